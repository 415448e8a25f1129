using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using Kahuna.Client;
using Kahuna.Client.Connection;

namespace Kahuna.Cli.Connecting;

/// <summary>
/// Sends HTTP requests to nodes, with the trust and the credentials of the client. An answer has 4 MiB at most; a
/// request waits as long as for a connection. Used by one command; its requests may be made at the same time.
/// </summary>
/// <param name="options">Those of the client.</param>
internal sealed class NodeHttp(KahunaClientOptions options) : IDisposable
{
    private const int AnswerBytesMax = 4 << 20;

    private readonly Dictionary<Uri, HttpClient> _clients = [];

    /// <summary>Asks a node.</summary>
    /// <param name="endpoint">The node; <see cref="Open"/> has been called for it.</param>
    /// <param name="path">Path and query.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="HttpRequestException">No answer came; <see cref="WhyOf"/> says why.</exception>
    /// <exception cref="OperationCanceledException">No answer came in time.</exception>
    public async Task<HttpResponseMessage> GetAsync(Uri endpoint, string path, CancellationToken ct)
    {
        using HttpRequestMessage request = new(HttpMethod.Get, new Uri(endpoint, path));
        if (options.Credentials is { } credentials
            && await credentials.Source.ReadAsync(ct).ConfigureAwait(false) is { } authorization)
        {
            request.Headers.TryAddWithoutValidation("authorization", authorization);
        }

        return await _clients[endpoint].SendAsync(request, ct).ConfigureAwait(false);
    }

    /// <summary>Prepares requests to a node; nothing is sent.</summary>
    /// <exception cref="IOException">The authorities, or the certificate to sign in with, cannot be used.</exception>
    public void Open(Uri endpoint)
    {
        if (_clients.ContainsKey(endpoint))
        {
            return;
        }

        SocketsHttpHandler handler = new()
        {
            AllowAutoRedirect = false,
            UseProxy = false,
            ConnectTimeout = options.ConnectTimeout,
            SslOptions = TrustOf(endpoint, options),
        };
        _clients.Add(endpoint, new HttpClient(handler)
        {
            Timeout = options.ConnectTimeout,
            MaxResponseContentBufferSize = AnswerBytesMax,
        });
    }

    /// <summary>TLS to a node: which certificates are trusted, and the one to sign in with.</summary>
    /// <inheritdoc cref="Open"/>
    public static SslClientAuthenticationOptions TrustOf(Uri endpoint, KahunaClientOptions options)
    {
        SslClientAuthenticationOptions trust = ServerTrust.For(endpoint, options.TrustedCaFile, options.Insecure);
        trust.ClientCertificateContext = options.Credentials?.Certificate?.Read();
        if (options.Insecure || options.TrustedCaFile is not null)
        {
            // The machine's authorities do not count: those of the option decide, or none.
            trust.CertificateChainPolicy = new X509ChainPolicy
            {
                TrustMode = X509ChainTrustMode.CustomRootTrust,
                RevocationMode = X509RevocationMode.NoCheck,
            };
        }

        return trust;
    }

    /// <summary>The innermost cause says most: a refused connection, a certificate.</summary>
    public static string WhyOf(Exception failure)
    {
        if (UntrustedServerException.Find(failure) is { } untrusted)
        {
            return untrusted.Replace("TrustedCaFile", "--trusted-ca", StringComparison.Ordinal);
        }

        while (failure.InnerException is { } inner and not AuthenticationException)
        {
            failure = inner;
        }

        return (failure.InnerException ?? failure).Message.TrimEnd('.');
    }

    /// <inheritdoc/>
    public void Dispose()
    {
        foreach (HttpClient client in _clients.Values)
        {
            client.Dispose();
        }
    }
}
