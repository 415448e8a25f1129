using System.Collections.Concurrent;
using Kahuna.Client.Wire.Grpc;

namespace Kahuna.Client.Connection;

/// <summary>Opens Exchange streams over the network, with one HTTP/2 connection per node. Owned by the connection; any thread.</summary>
internal sealed class GrpcFrameChannel(KahunaClientOptions options) : IFrameChannel
{
    private const string ExchangePath = "/kahuna.v1.Cluster/Exchange";

    private readonly string? _trustedCaFile = options.TrustedCaFile;
    private readonly bool _insecure = options.Insecure;
    private readonly TimeSpan _connectTimeout = options.ConnectTimeout;
    private readonly TimeSpan _keepAliveInterval = options.KeepAliveInterval;
    private readonly TimeSpan _keepAliveTimeout = options.KeepAliveTimeout;
    private readonly AddressRace _addresses = AddressRace.ForNetwork(TimeProvider.System);
    private readonly ConcurrentDictionary<Uri, GrpcChannel> _channels = new();

    /// <summary>What streams are opened with.</summary>
    public GrpcMetadata? Headers { get; init; }

    /// <inheritdoc/>
    public async ValueTask<IFrameStream> OpenAsync(Uri endpoint, CancellationToken ct)
    {
        GrpcChannel channel = _channels.TryGetValue(endpoint, out GrpcChannel? known) ? known : await AddAsync(endpoint).ConfigureAwait(false);
        return new GrpcFrameStream(await channel.OpenRawDuplexAsync(ExchangePath, Headers, ct).ConfigureAwait(false));
    }

    /// <inheritdoc/>
    public async ValueTask DisposeAsync()
    {
        foreach (Uri endpoint in _channels.Keys)
        {
            if (_channels.TryRemove(endpoint, out GrpcChannel? channel))
            {
                await channel.DisposeAsync().ConfigureAwait(false);
            }
        }
    }

    /// <summary>What the client's options mean for the connection to one node.</summary>
    /// <exception cref="IOException">The trusted CA file cannot be read.</exception>
    internal GrpcChannelOptions OptionsFor(Uri endpoint) => new()
    {
        Tls = ServerTrust.For(endpoint, _trustedCaFile, _insecure),
        Dial = _addresses.ConnectAsync,
        ConnectTimeout = _connectTimeout,
        InitialHttp2StreamWindowSize = 4 << 20,
        KeepAlivePingDelay = _keepAliveInterval,
        KeepAlivePingTimeout = _keepAliveTimeout,
        EnableMultipleHttp2Connections = false,
    };

    private async ValueTask<GrpcChannel> AddAsync(Uri endpoint)
    {
        GrpcChannel made = new(endpoint, OptionsFor(endpoint));
        GrpcChannel kept = _channels.GetOrAdd(endpoint, made);
        if (kept != made)
        {
            await made.DisposeAsync().ConfigureAwait(false);
        }

        return kept;
    }
}
