using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>What the groups of a loop share within a turn. Immutable; the parts belong to the loop.</summary>
/// <param name="Clock">The turn's time.</param>
/// <param name="LogWatch">How the node's log does.</param>
/// <param name="Log">What goes to the log.</param>
/// <param name="Peers">What goes to the peers.</param>
/// <param name="Replies">What goes to the clients.</param>
internal sealed record TurnParts(TurnClock Clock, LogWatch LogWatch, LogBatch Log, PeerMessages Peers,
    ReplyFrames Replies)
{
    /// <inheritdoc cref="TurnClock.IsAfterPause"/>
    public bool IsAfterPause => Clock.IsAfterPause;

    /// <inheritdoc cref="LogWatch.IsStalled"/>
    public bool IsLogStalled => LogWatch.IsStalled;
}
