using System.Collections.Concurrent;
using Kahuna.Client.Wire.Grpc;

namespace Kahuna.Client.Connection;

/// <summary>Opens Exchange streams over the network, with one HTTP/2 connection per node. Owned by the connection; any thread.</summary>
internal sealed class GrpcFrameChannel(KahunaClientOptions options) : IFrameChannel
{
    private const string ExchangePath = "/kahuna.v1.Cluster/Exchange";

    // A node that is silent for so long is asked for a sign of life, and counts as dead when it gives none within the same
    // time: a stopped process or a cut cable ends its stream within 6 s, below the default request timeout.
    private static readonly TimeSpan s_silence = TimeSpan.FromSeconds(3);

    private readonly string? _trustedCaFile = options.TrustedCaFile;
    private readonly bool _insecure = options.Insecure;
    private readonly TimeSpan _connectTimeout = options.ConnectTimeout;
    private readonly ConcurrentDictionary<Uri, GrpcChannel> _channels = new();

    /// <inheritdoc/>
    public async ValueTask<IFrameStream> OpenAsync(Uri endpoint, CancellationToken ct)
    {
        GrpcChannel channel = _channels.TryGetValue(endpoint, out GrpcChannel? known) ? known : await AddAsync(endpoint);
        return new GrpcFrameStream(await channel.OpenRawDuplexAsync(ExchangePath, null, ct));
    }

    /// <inheritdoc/>
    public async ValueTask DisposeAsync()
    {
        foreach (Uri endpoint in _channels.Keys)
        {
            if (_channels.TryRemove(endpoint, out GrpcChannel? channel))
            {
                await channel.DisposeAsync();
            }
        }
    }

    private async ValueTask<GrpcChannel> AddAsync(Uri endpoint)
    {
        GrpcChannel made = new(endpoint, new GrpcChannelOptions
        {
            Tls = ServerTrust.For(endpoint, _trustedCaFile, _insecure),
            ConnectTimeout = _connectTimeout,
            InitialHttp2StreamWindowSize = 4 << 20,
            KeepAlivePingDelay = s_silence,
            KeepAlivePingTimeout = s_silence,
            EnableMultipleHttp2Connections = false,
        });
        GrpcChannel kept = _channels.GetOrAdd(endpoint, made);
        if (kept != made)
        {
            await made.DisposeAsync();
        }

        return kept;
    }
}
