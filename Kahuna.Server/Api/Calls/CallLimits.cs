using Kahuna.Server.Partitions;

namespace Kahuna.Server.Api.Calls;

/// <summary>What a call may take of a node. Filled before the server is built and not changed afterwards.</summary>
internal sealed class CallLimits
{
    /// <summary>What gRPC implementations allow by default.</summary>
    public const int MessageBytesDefault = 4 << 20;

    /// <summary>Largest message that is accepted, also after it was unpacked; raise it by the largest value that the node is configured to take.</summary>
    public int MessageBytesMax { get; init; } = MessageBytesDefault;

    /// <summary>
    /// A call with one request whose request is not complete after this time is ended, so that a caller that stops in the middle holds nothing. So is a stream whose first
    /// message, or one that has begun, is not complete after it.
    /// </summary>
    public TimeSpan RequestPatience { get; init; } = TimeSpan.FromSeconds(30);

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

    /// <summary>Ends all streams, which have no end of their own, when the node stops; calls with one request and one reply are finished.</summary>
    public CancellationToken Stop { get; init; }
}
