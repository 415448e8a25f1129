using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Locks;
using Kahuna.Server.State.Rows;
using Kahuna.Server.State.Sessions;

namespace Kahuna.Server.Hosting.Page;

/// <summary>A page of the sessions of a group. Used once.</summary>
/// <param name="groupIndex">The index of the group.</param>
/// <param name="from">The row at which the page begins.</param>
/// <param name="countMax">Sessions after which it is full.</param>
internal sealed class SessionInspection(int groupIndex, Row from, int countMax) : Inspection(groupIndex)
{
    /// <summary>What was found; nothing in a group that has stopped.</summary>
    public SessionPage Found { get; private set; } = new([], Row.None);

    /// <inheritdoc/>
    protected override void Read(Group group) =>
        Found = group.State.Sessions.List(from, countMax, ClusterMoment.Of(group));
}

/// <summary>The queue of a lock. Used once.</summary>
/// <param name="groupIndex">The index of the group.</param>
/// <param name="name">The lock.</param>
/// <param name="countMax">The most waiters that are told.</param>
internal sealed class QueueInspection(int groupIndex, byte[] name, int countMax) : Inspection(groupIndex)
{
    /// <summary>How long each of the first waits, in milliseconds; null: this node does not know.</summary>
    public long?[] WaitedMs { get; private set; } = [];

    /// <summary>What was found; nothing in a group that has stopped.</summary>
    public LockQueue Found { get; private set; } = LockQueue.Empty;

    /// <inheritdoc/>
    protected override void Read(Group group)
    {
        Found = group.State.Locks.Rows.QueueOf(name, countMax, ClusterMoment.Of(group));
        WaitedMs = [.. Found.First.Select(waiter => group.Requests.WaitedMs(waiter.Token))];
    }
}

/// <summary>The time that a list counts from. Stateless.</summary>
internal static class ClusterMoment
{
    /// <summary>
    /// The present cluster time where this node leads. Elsewhere that of the last entry: what is left of a time is then
    /// told as too much, never as too little.
    /// </summary>
    public static ClusterTime Of(Group group) =>
        group.IsLeader && group.Requests.IsServing ? group.Requests.ClusterNow : group.State.Time;
}
