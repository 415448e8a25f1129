using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>How one partition stands on this node.</summary>
/// <param name="Role">This node's role.</param>
/// <param name="Leader">The leader as far as known.</param>
/// <param name="Term">The current term.</param>
/// <param name="Serving">This node leads and has applied an entry of its own term, or follows a known leader.</param>
/// <param name="Epoch">The epoch of an ephemeral group; 0 for others.</param>
/// <param name="Lags">This node follows and has not caught up with its leader (<c>CatchUp</c>).</param>
internal readonly record struct PartitionStatus(RaftRole Role, NodeId Leader, Term Term, bool Serving, Epoch Epoch,
    bool Lags = false)
{
    /// <summary>
    /// A client finds its way by both alike. An election that leads to nothing, and a follower that lags and does not,
    /// change many times a second, and each change that is told costs a map on every stream.
    /// </summary>
    public bool RoutesAs(PartitionStatus other) =>
        (Leader, Serving, Epoch, Role == RaftRole.Leader) == (other.Leader, other.Serving, other.Epoch,
            other.Role == RaftRole.Leader) && (Leader.IsNone || Term == other.Term);
}
