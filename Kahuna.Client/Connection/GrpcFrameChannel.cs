using System.Net;
using System.Net.Security;
using Kahuna.Client.Connection.Access;

namespace Kahuna.Client.Connection;

/// <summary>
/// Opens streams and makes calls over the network, with one HTTP/2 connection per node. A changed client certificate is
/// shown on a new connection. Owned by the connection; any thread.
/// </summary>
internal sealed class GrpcFrameChannel(ConnectionSettings settings) : IFrameChannel
{
    private const string ExchangePath = "/kahuna.v1.Cluster/Exchange";
    private const string WatchPath = "/kahuna.v1.Cluster/Watch";
    private const string AuthorizationHeader = "authorization";

    private readonly string? _trustedCaFile = settings.TrustedCaFile;
    private readonly bool _insecure = settings.Insecure;
    private readonly TimeSpan _connectTimeout = settings.ConnectTimeout;
    private readonly TimeSpan _keepAliveInterval = settings.KeepAliveInterval;
    private readonly TimeSpan _keepAliveTimeout = settings.KeepAliveTimeout;
    private readonly ClientCertificateFile? _certificate = settings.ClientCertificate;
    private readonly AddressRace _addresses = AddressRace.ForNetwork(TimeProvider.System);
    private readonly DirectLinkDialer _links = new(settings);

    private readonly Lock _lock = new();
    private readonly Dictionary<Uri, NodeConnection> _connections = [];

    /// <summary>Connections that showed a certificate which was replaced; streams may still use them.</summary>
    private readonly List<HttpMessageInvoker> _replaced = [];

    /// <summary>Says a header for each new stream besides those of the protocol; null for none.</summary>
    public Func<(string Name, string Value)?>? Header { get; init; }

    /// <summary>The certificate to show instead of that of the options; null: that of the options.</summary>
    public CertificateSource? Certificate { get; init; }

    /// <inheritdoc/>
    public async ValueTask<IFrameStream> OpenAsync(Uri endpoint, string? authorization, CancellationToken ct) =>
        await _links.CarryAsync(
            endpoint,
            await OpenAsync(endpoint, ExchangePath, authorization, _links.MayAsk(endpoint), ct).ConfigureAwait(false),
            ct).ConfigureAwait(false);

    /// <inheritdoc/>
    public async ValueTask<IFrameStream> OpenWatchAsync(Uri endpoint, string? authorization, CancellationToken ct) =>
        await OpenAsync(endpoint, WatchPath, authorization, wantsLink: false, ct).ConfigureAwait(false);

    /// <inheritdoc/>
    public async ValueTask<CallAnswer> CallAsync(
        Uri endpoint, UnaryCall call, string? authorization, CancellationToken ct) =>
        await GrpcUnaryCall.RunAsync(
            ConnectionTo(endpoint),
            new Uri(endpoint, call.Path),
            HeaderOf(endpoint, authorization),
            call.Request,
            ct).ConfigureAwait(false);

    /// <inheritdoc/>
    public ValueTask DisposeAsync()
    {
        lock (_lock)
        {
            foreach (HttpMessageInvoker connection in (IEnumerable<HttpMessageInvoker>)
                [.. _connections.Values.Select(static connection => connection.Invoker), .. _replaced])
            {
                connection.Dispose();
            }
        }

        return ValueTask.CompletedTask;
    }

    /// <summary>The HTTP handler for one node, from the client's options. The caller owns it.</summary>
    /// <param name="endpoint">The node.</param>
    /// <param name="certificate">What the client shows; null for nothing.</param>
    /// <exception cref="IOException">The trusted CA file cannot be read.</exception>
    internal SocketsHttpHandler HandlerFor(Uri endpoint, SslStreamCertificateContext? certificate = null)
    {
        SslClientAuthenticationOptions tls = ServerTrust.For(endpoint, _trustedCaFile, _insecure);
        tls.ClientCertificateContext = certificate;

        // A session that another connection of this process began without a certificate would be resumed without it.
        tls.AllowTlsResume = certificate is null;
        return new SocketsHttpHandler
        {
            ActivityHeadersPropagator = null,
            AllowAutoRedirect = false,
            AutomaticDecompression = DecompressionMethods.None,
            ConnectCallback = (context, ct) => _addresses.ConnectAsync(context.DnsEndPoint, ct),
            ConnectTimeout = _connectTimeout,
            EnableMultipleHttp2Connections = false,
            InitialHttp2StreamWindowSize = 4 << 20,
            KeepAlivePingDelay = _keepAliveInterval,
            KeepAlivePingPolicy = HttpKeepAlivePingPolicy.WithActiveRequests,
            KeepAlivePingTimeout = _keepAliveTimeout,
            PooledConnectionIdleTimeout = certificate is null ? Timeout.InfiniteTimeSpan : TimeSpan.FromMinutes(1),
            SslOptions = tls,
            UseCookies = false,
            UseProxy = false,
        };
    }

    private Task<GrpcFrameStream> OpenAsync(
        Uri endpoint, string path, string? authorization, bool wantsLink, CancellationToken ct) =>
        GrpcFrameStream.OpenAsync(
            ConnectionTo(endpoint), new Uri(endpoint, path), HeaderOf(endpoint, authorization), ct, wantsLink);

    private (string Name, string Value)? HeaderOf(Uri endpoint, string? authorization) =>
        authorization is null ? Header?.Invoke()
            : endpoint.Scheme == Uri.UriSchemeHttps ? (AuthorizationHeader, authorization)
            : throw new IOException($"{endpoint} is not encrypted, so that no credentials are sent to it");

    private HttpMessageInvoker ConnectionTo(Uri endpoint)
    {
        SslStreamCertificateContext? certificate = Certificate?.Current ?? _certificate?.Read();
        lock (_lock)
        {
            if (_connections.TryGetValue(endpoint, out NodeConnection? known))
            {
                if (known.Certificate == certificate)
                {
                    return known.Invoker;
                }

                _replaced.Add(known.Invoker);
            }

            HttpMessageInvoker made = new(HandlerFor(endpoint, certificate));
            _connections[endpoint] = new NodeConnection(made, certificate);
            return made;
        }
    }

    private sealed record NodeConnection(HttpMessageInvoker Invoker, SslStreamCertificateContext? Certificate);
}
