using Kahuna.Server.Primitives;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.States;

/// <summary>What the state thread asks a partition's loop for, or tells it. Immutable, but for the buffers, which go over with it.</summary>
internal abstract record StateCall(GroupId Group)
{
    /// <summary>The epoch that it is about; 0 but for ephemeral groups. In another epoch it is void.</summary>
    public ulong Epoch { get; init; }
}

/// <summary>
/// Begin a view of what changed (or of everything), and tell its mark: <see cref="ViewBegun"/>. Views that are stored have no transfer; one that is sent, because the group's state is
/// not stored, is known by its transfer.
/// </summary>
internal sealed record BeginView(GroupId Group, bool Whole, ulong Transfer = 0) : StateCall(Group);

/// <summary>Add the view's next records: <see cref="RecordsTaken"/>.</summary>
internal sealed record TakeRecords(GroupId Group, StateSlice Slice, int BytesMax, ulong Transfer = 0) : StateCall(Group);

/// <summary>The view of a transfer that has ended is of no use any more.</summary>
internal sealed record EndView(GroupId Group, ulong Transfer) : StateCall(Group);

/// <summary>The state up to this entry is on stable storage.</summary>
internal sealed record StateStored(GroupId Group, LogIndex Index) : StateCall(Group);

/// <summary>What the view held did not reach the store; the next one must hold everything.</summary>
internal sealed record StateNotStored(GroupId Group) : StateCall(Group);

/// <summary>A snapshot for a follower has ended.</summary>
internal sealed record SnapshotSent(GroupId Group, NodeId Follower, LogIndex Index, bool Installed) : StateCall(Group);

/// <summary>A whole state has arrived and is verified: stand still if it is of use. Answered with <see cref="InstallAnswered"/>.</summary>
internal sealed record PrepareInstall(GroupId Group, StateMark Mark) : StateCall(Group);

/// <summary>The arrived state is on stable storage in place of the own one, which is of no use any more and can be let go.</summary>
internal sealed record DropState(GroupId Group) : StateCall(Group);

/// <summary>Go on with the arrived state; with null, with the own one as before.</summary>
internal sealed record Install(GroupId Group, StateMark Mark, StateMachine? State) : StateCall(Group);
