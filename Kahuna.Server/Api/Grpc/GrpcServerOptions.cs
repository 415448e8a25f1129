using Kahuna.Client.Wire.Grpc;
using Kahuna.Server.Partitions;

namespace Kahuna.Server.Api.Grpc;

/// <summary>Settings of a <see cref="GrpcServer"/>. Filled before the server is built and not changed afterwards.</summary>
internal sealed class GrpcServerOptions
{
    /// <summary>Largest message that is accepted: what gRPC implementations allow by default; raise it by the largest value that the node is configured to take.</summary>
    public int MaxReceiveMessageBytes { get; init; } = GrpcProtocol.MaxReceiveBytesDefault;

    /// <summary>Largest message that is sent.</summary>
    public int MaxSendMessageBytes { get; init; } = int.MaxValue - GrpcProtocol.PrefixBytes;

    /// <summary>
    /// A call with one request whose request is not complete after this time is ended, so that a caller that stops in the middle holds nothing. So is a stream whose first
    /// message, or one that has begun, is not complete after it.
    /// </summary>
    public TimeSpan RequestReceiveTimeout { get; init; } = TimeSpan.FromSeconds(30);

    /// <summary>How long a stream may go on after its deadline to end by itself; then it is reset.</summary>
    public TimeSpan StreamEndGrace { get; init; } = TimeSpan.FromSeconds(2);

    /// <summary>What errors of unary calls say of the call's effect; null: nothing.</summary>
    public OutcomeTrailer? Outcome { get; init; }

    /// <summary>The node's room for answers that wait to leave; null: they are not counted.</summary>
    public ReplyRoom? Room { get; init; }

    /// <summary>The node's room for requests that are not complete.</summary>
    public RequestRoom Requests { get; init; } = new(RequestRoom.NodeBytesMax);

    /// <summary>The node's room for requests that are complete and wait to be carried out, or to be answered.</summary>
    public RequestRoom Held { get; init; } = new(RequestRoom.NodeBytesMax);

    /// <summary>
    /// Calls without an end of their own (exchanges, watches, reflection) that one connection may have: as many as gRPC's proxies put on one connection by default. Each has
    /// 64 KiB of answers that always fit (<see cref="ReplyRoom.SmallBytes"/>).
    /// </summary>
    public int StreamsPerConnectionMax { get; init; } = 100;

    /// <summary>
    /// How long a caller may take for a reply of 4 KB or more, which is kept in memory meanwhile; after it the call is reset. 16 MiB in this time are 5 Mbit/s. A stream whose
    /// caller takes nothing that long, while something waits for it, is reset as well.
    /// </summary>
    public TimeSpan ReplyPatience { get; init; } = TimeSpan.FromSeconds(30);

    /// <summary>How long the reset of a call that waits for its caller may take to leave; after it the connection, which takes nothing at all, is closed.</summary>
    public TimeSpan ResetPatience { get; init; } = TimeSpan.FromSeconds(30);

    /// <summary>Ends all streams, which have no end of their own, when the server stops; calls with one request and one reply are finished.</summary>
    public CancellationToken StopToken { get; init; }
}
