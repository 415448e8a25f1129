using Kahuna.Server.Primitives;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// What the checkpoint service asks a partition's loop for, or tells it. Immutable, but for the buffers, which go over
/// with it.
/// </summary>
internal abstract record CheckpointRequest(GroupId Group)
{
    /// <summary>The epoch that it is about; 0 but for ephemeral groups. In another epoch it is void.</summary>
    public Epoch Epoch { get; init; }
}

/// <summary>
/// Begin a view of what changed (or of everything), and tell its mark: <see cref="ViewBegun"/>. Views that are stored
/// have no transfer; one that is sent, because the group's state is not stored, is known by its transfer.
/// </summary>
internal sealed record BeginView(GroupId Group, bool Whole, ulong Transfer = 0) : CheckpointRequest(Group);

/// <summary>Add the view's next records: <see cref="RecordsTaken"/>.</summary>
internal sealed record TakeRecords(GroupId Group, ViewSlice Slice, int BytesMax, ulong Transfer = 0)
    : CheckpointRequest(Group);

/// <summary>The view of a transfer that has ended is of no use now.</summary>
internal sealed record EndView(GroupId Group, ulong Transfer) : CheckpointRequest(Group);

/// <summary>The state up to this entry is on stable storage.</summary>
internal sealed record StateStored(GroupId Group, LogIndex Index) : CheckpointRequest(Group);

/// <summary>What the view held did not reach the store; the next one must hold everything.</summary>
internal sealed record StateNotStored(GroupId Group) : CheckpointRequest(Group);

/// <summary>A snapshot for a follower has ended.</summary>
internal sealed record SnapshotSent(GroupId Group, NodeId Follower, LogIndex Index, bool Installed)
    : CheckpointRequest(Group);

/// <summary>
/// A whole state has arrived and is verified: pause if it is needed. Answered with <see cref="InstallAnswered"/>.
/// </summary>
internal sealed record PrepareInstall(GroupId Group, CheckpointMark Mark) : CheckpointRequest(Group);

/// <summary>
/// The arrived state is on stable storage in place of the own one, which is of no use now and can be let go.
/// </summary>
internal sealed record DropState(GroupId Group) : CheckpointRequest(Group);

/// <summary>Go on with the arrived state; with null, with the own one as before.</summary>
internal sealed record Install(GroupId Group, CheckpointMark Mark, StateMachine? State) : CheckpointRequest(Group);
