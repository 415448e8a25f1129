using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Api.Calls;

/// <summary>The limits of a call. Set before the server is built; immutable afterwards.</summary>
internal sealed class CallLimits
{
    /// <summary>The default of gRPC implementations.</summary>
    public const int MessageBytesDefault = 4 << 20;

    /// <summary>
    /// Largest accepted message, before and after decompression. It must leave room for the largest value that the node
    /// accepts.
    /// </summary>
    public int MessageBytesMax { get; init; } = MessageBytesDefault;

    /// <summary>
    /// How long a request may take to arrive. After it, a call with one request is ended, so that an incomplete request
    /// does not hold memory. So is a stream whose first message, or a message in progress, is incomplete.
    /// </summary>
    public TimeSpan RequestTimeout { get; init; } = TimeSpan.FromSeconds(30);

    /// <summary>The node's budget for unsent replies; null: they are not counted.</summary>
    public ReplyRoom? Room { get; init; }

    /// <summary>The node's budget for incomplete requests.</summary>
    public RequestBudget IncompleteRequests { get; init; } = new(RequestBudget.NodeBytesMax);

    /// <summary>The node's budget for complete requests that wait to be executed or answered.</summary>
    public RequestBudget WaitingRequests { get; init; } = new(RequestBudget.NodeBytesMax);

    /// <summary>
    /// Open streams (exchanges, watches, keys, reflection) per connection: the number that gRPC proxies put on one
    /// connection by default. Each has 64 KiB of replies that always fit (<see cref="ReplyRoom.SmallBytes"/>).
    /// </summary>
    public int StreamsPerConnectionMax { get; init; } = 100;

    /// <summary>
    /// How long a caller may take to read a reply of 4 KB or more, which stays in memory meanwhile; then the call is
    /// reset. 16 MiB in this time are 5 Mbit/s. A stream whose caller reads nothing for that long, although something
    /// is waiting, is reset as well.
    /// </summary>
    public TimeSpan ReplyTimeout { get; init; } = TimeSpan.FromSeconds(30);

    /// <summary>
    /// How long the reset of a call may wait to be sent. After it, the connection, which accepts nothing, is closed.
    /// </summary>
    public TimeSpan ResetTimeout { get; init; } = TimeSpan.FromSeconds(30);

    /// <summary>Ends all streams when the node stops; calls with one request and one reply are completed.</summary>
    public CancellationToken Stop { get; init; }
}
