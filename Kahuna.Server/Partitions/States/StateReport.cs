using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.States;

/// <summary>What a loop, or a link, tells the state thread. Immutable, but for the buffers, which go over with it.</summary>
internal abstract record StateReport(GroupId Group);

/// <summary>So much log has gathered since the stored state that it should be stored anew.</summary>
internal sealed record FlushDue(GroupId Group) : StateReport(Group);

/// <summary>Answer to <see cref="BeginView"/>; without a mark there is none to be had now.</summary>
internal sealed record ViewBegun(GroupId Group, StateMark? Mark, bool Whole, ulong Transfer = 0) : StateReport(Group);

/// <summary>Answer to <see cref="TakeRecords"/>. Ended: the view is gone, and what was taken of it is of no use. AsideBytes: what waits in memory because it has changed since.</summary>
internal sealed record RecordsTaken(GroupId Group, StateSlice Slice, bool More, bool Ended, long AsideBytes, ulong Transfer = 0) : StateReport(Group);

/// <summary>A follower needs the state; the log does not reach back to it. The epoch counts for ephemeral groups only.</summary>
internal sealed record SnapshotWanted(GroupId Group, NodeId Follower, Term Term, ulong Epoch = 0) : StateReport(Group);

/// <summary>This node leads the group no more: it sends no snapshots of it.</summary>
internal sealed record SnapshotsVoid(GroupId Group) : StateReport(Group);

/// <summary>Answer to <see cref="PrepareInstall"/>.</summary>
internal sealed record InstallAnswered(GroupId Group, InstallAnswer Answer) : StateReport(Group);

/// <summary>A snapshot's message from a peer.</summary>
internal sealed record SnapshotArrived(GroupId Group, NodeId From, ByteBuffer Frame) : StateReport(Group);

/// <summary>Whether an arrived state is to be installed.</summary>
internal enum InstallAnswer : byte
{
    /// <summary>The partition stands still and waits for <see cref="Install"/>.</summary>
    Ready,

    /// <summary>It has this state, or a later one.</summary>
    Superseded,

    /// <summary>Ask again a little later.</summary>
    NotNow,
}
