using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// What a loop, or a link, tells the checkpoint service. Immutable, but for the buffers, which go over with it.
/// </summary>
internal abstract record CheckpointEvent(GroupId Group);

/// <summary>So much log has gathered since the stored state that it should be stored anew.</summary>
internal sealed record FlushDue(GroupId Group) : CheckpointEvent(Group);

/// <summary>Answer to <see cref="BeginView"/>; without a mark there is none to be had now.</summary>
internal sealed record ViewBegun(GroupId Group, CheckpointMark? Mark, bool Whole, ulong Transfer = 0)
    : CheckpointEvent(Group);

/// <summary>
/// Answer to <see cref="TakeRecords"/>. Ended: the view is gone, and what was taken of it is of no use. PreImageBytes:
/// what waits in memory because it has changed since.
/// </summary>
internal sealed record RecordsTaken(GroupId Group, ViewSlice Slice, bool More, bool Ended, long PreImageBytes,
    ulong Transfer = 0) : CheckpointEvent(Group);

/// <summary>
/// A follower needs the state; the log does not reach back to it. The epoch counts for ephemeral groups only.
/// </summary>
internal sealed record SnapshotWanted(GroupId Group, NodeId Follower, Term Term, Epoch Epoch = default)
    : CheckpointEvent(Group);

/// <summary>This node leads the group no more: it sends no snapshots of it.</summary>
internal sealed record SnapshotsVoid(GroupId Group) : CheckpointEvent(Group);

/// <summary>Answer to <see cref="PrepareInstall"/>.</summary>
internal sealed record InstallAnswered(GroupId Group, InstallAnswer Answer) : CheckpointEvent(Group);

/// <summary>A snapshot's message from a peer.</summary>
internal sealed record SnapshotArrived(GroupId Group, NodeId From, ByteBuffer Frame) : CheckpointEvent(Group);

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
