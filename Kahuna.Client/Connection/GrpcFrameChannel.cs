using System.Collections.Concurrent;
using System.Net;

namespace Kahuna.Client.Connection;

/// <summary>
/// Opens Exchange streams over the network, with one HTTP/2 connection per node. Owned by the connection; any thread.
/// </summary>
internal sealed class GrpcFrameChannel(ConnectionSettings settings) : IFrameChannel
{
    private const string ExchangePath = "/kahuna.v1.Cluster/Exchange";

    private readonly string? _trustedCaFile = settings.TrustedCaFile;
    private readonly bool _insecure = settings.Insecure;
    private readonly TimeSpan _connectTimeout = settings.ConnectTimeout;
    private readonly TimeSpan _keepAliveInterval = settings.KeepAliveInterval;
    private readonly TimeSpan _keepAliveTimeout = settings.KeepAliveTimeout;
    private readonly AddressRace _addresses = AddressRace.ForNetwork(TimeProvider.System);
    private readonly ConcurrentDictionary<Uri, HttpMessageInvoker> _connections = new();

    /// <summary>A header for new streams besides those of the protocol; null for none.</summary>
    public (string Name, string Value)? Header { get; init; }

    /// <inheritdoc/>
    public async ValueTask<IFrameStream> OpenAsync(Uri endpoint, CancellationToken ct)
    {
        HttpMessageInvoker connection = _connections.GetOrAdd(
            endpoint, static (node, channel) => new HttpMessageInvoker(channel.HandlerFor(node)), this);
        return await GrpcFrameStream.OpenAsync(connection, new Uri(endpoint, ExchangePath), Header, ct)
            .ConfigureAwait(false);
    }

    /// <inheritdoc/>
    public ValueTask DisposeAsync()
    {
        foreach (HttpMessageInvoker connection in _connections.Values)
        {
            connection.Dispose();
        }

        return ValueTask.CompletedTask;
    }

    /// <summary>The HTTP handler for one node, from the client's options. The caller owns it.</summary>
    /// <exception cref="IOException">The trusted CA file cannot be read.</exception>
    internal SocketsHttpHandler HandlerFor(Uri endpoint) => new()
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
        PooledConnectionIdleTimeout = Timeout.InfiniteTimeSpan,
        SslOptions = ServerTrust.For(endpoint, _trustedCaFile, _insecure),
        UseCookies = false,
        UseProxy = false,
    };
}
