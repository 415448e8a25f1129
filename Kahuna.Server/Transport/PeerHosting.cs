using System.Net.Security;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;

namespace Kahuna.Server.Transport;

/// <summary>Serves clients and nodes on the same port of a Kestrel host. Stateless.</summary>
internal static class PeerHosting
{
    /// <summary>The extended key usage of clients (RFC 5280, 4.2.1.12).</summary>
    private const string ClientUse = "1.3.6.1.5.5.7.3.2";

    /// <summary>Timeout of a client's TLS handshake.</summary>
    private static readonly TimeSpan s_tlsTimeout = TimeSpan.FromSeconds(10);

    /// <summary>
    /// HTTP/1.1 and HTTP/2 over TLS, with the current certificate at the time of connecting, and a limit on concurrent
    /// handshakes.
    /// </summary>
    /// <param name="listen">The end point.</param>
    /// <param name="tls">The node's certificate.</param>
    /// <param name="clientAuthorities">Those that issue client certificates, asked for each connection: a client may
    /// show a certificate, and the handshake fails unless one of them issued it for clients. Null: none is asked
    /// for.</param>
    public static ListenOptions UseKahunaTls(
        this ListenOptions listen, TlsSource tls, Func<X509Certificate2Collection>? clientAuthorities = null)
    {
        listen.Protocols = HttpProtocols.Http1AndHttp2;
        ILogger logger = listen.ApplicationServices.GetRequiredService<ILoggerFactory>()
            .CreateLogger("Kahuna.Transport");
        HandshakeLimiter limiter = new(error => logger.HandshakeFailed(error.Message));
        listen.Use(limiter.Waiting);
        listen.UseHttps(new TlsHandshakeCallbackOptions
        {
            HandshakeTimeout = s_tlsTimeout,
            OnConnection = _ => ValueTask.FromResult(OptionsOf(tls, clientAuthorities?.Invoke())),
        });
        listen.Use(HandshakeLimiter.Done);
        return listen;
    }

    private static SslServerAuthenticationOptions OptionsOf(TlsSource tls, X509Certificate2Collection? authorities)
    {
        SslServerAuthenticationOptions options = new()
        {
            ServerCertificateContext = tls.Current.Certificate,
            AllowRenegotiation = false,
        };
        if (authorities is not null)
        {
            // Asks for a certificate; that there is none is no error here.
            options.ClientCertificateRequired = true;
            options.CertificateChainPolicy = PolicyOf(authorities);
            options.RemoteCertificateValidationCallback = static (_, _, _, errors) =>
                errors is SslPolicyErrors.None or SslPolicyErrors.RemoteCertificateNotAvailable;
        }

        return options;
    }

    /// <summary>Trusts these authorities alone. Intermediate ones among them are used to build the chain.</summary>
    private static X509ChainPolicy PolicyOf(X509Certificate2Collection authorities)
    {
        X509ChainPolicy policy = new()
        {
            TrustMode = X509ChainTrustMode.CustomRootTrust,
            RevocationMode = X509RevocationMode.NoCheck,
            DisableCertificateDownloads = true,
        };
        policy.ApplicationPolicy.Add(new Oid(ClientUse));
        foreach (X509Certificate2 authority in authorities)
        {
            bool isRoot = authority.SubjectName.RawData.AsSpan().SequenceEqual(authority.IssuerName.RawData);
            (isRoot ? policy.CustomTrustStore : policy.ExtraStore).Add(authority);
        }

        return policy;
    }

    /// <summary>Routes connections of other nodes, on every address that the host listens on, to these links.</summary>
    /// <param name="services">The host's services.</param>
    /// <param name="links">The links of this node.</param>
    /// <param name="failed">Called when a listener ended although it was not closed; null to ignore it.</param>
    public static IServiceCollection AddKahunaPeers(
        this IServiceCollection services, PeerLinks links, Action<Exception>? failed = null)
    {
        ListenerCallbacks owner = new(links.Accept, links.CannotAccept, failed ?? (static _ => { }));
        return services.AddSingleton<IConnectionListenerFactory>(
            provider => new PeerListenerFactory(owner, provider.GetRequiredService<ILoggerFactory>()));
    }
}
