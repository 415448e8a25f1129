using System.Net;
using System.Net.Security;

namespace Kahuna.Client.Wire.Grpc;

/// <summary>Settings of a <see cref="GrpcChannel"/>. Filled by its maker before the channel exists and not changed afterwards.</summary>
internal sealed class GrpcChannelOptions
{
    /// <summary>Trust and identity for https addresses; null: the system's trust.</summary>
    public SslClientAuthenticationOptions? Tls { get; init; }

    /// <summary>Connects to a host and port; null: as the system does, one address after the other.</summary>
    public Func<DnsEndPoint, CancellationToken, ValueTask<Stream>>? Dial { get; init; }

    /// <summary>How long making a connection, TLS included, may take.</summary>
    public TimeSpan ConnectTimeout { get; init; } = TimeSpan.FromSeconds(10);

    /// <summary>Largest message that is accepted from the server.</summary>
    public int MaxReceiveMessageBytes { get; init; } = GrpcProtocol.MaxReceiveBytesDefault;

    /// <summary>Largest message that is sent.</summary>
    public int MaxSendMessageBytes { get; init; } = int.MaxValue - GrpcProtocol.PrefixBytes;

    /// <summary>How much of a stream the server may send before this side has read it: a megabyte keeps a stream full at 1 GB/s and a millisecond of delay.</summary>
    public int InitialHttp2StreamWindowSize { get; init; } = 1 << 20;

    /// <summary>A connection that was silent for so long is asked for a sign of life, while a call is open.</summary>
    public TimeSpan KeepAlivePingDelay { get; init; } = TimeSpan.FromSeconds(15);

    /// <summary>How long that sign may take before the connection counts as dead.</summary>
    public TimeSpan KeepAlivePingTimeout { get; init; } = TimeSpan.FromSeconds(10);

    /// <summary>Opens a further connection when the server's limit of streams per connection is reached; otherwise calls wait.</summary>
    public bool EnableMultipleHttp2Connections { get; init; } = true;
}
