using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>What became of a <see cref="LeaderMove"/>. Only <see cref="Left"/> has changed anything.</summary>
internal enum MoveResult
{
    /// <summary>The transfer has begun. Not an answer.</summary>
    Begun,

    /// <summary>This node has stopped leading; which node leads now is not known here yet.</summary>
    Left,

    /// <summary>This node does not lead the group.</summary>
    NotLeader,

    /// <summary>This node leads the group, and is the target.</summary>
    Leads,

    /// <summary>Another transfer is under way, or this node has only just been elected.</summary>
    Busy,

    /// <summary>The node stops and hands over its leaderships by itself.</summary>
    Draining,

    /// <summary>The group has stopped on an internal error.</summary>
    Stopped,

    /// <summary>No follower can lead now.</summary>
    NoSuccessor,

    /// <summary>The target does not vote.</summary>
    NoVoter,

    /// <summary>The target lacks more than entries of the leader's log: it waits for a snapshot.</summary>
    Behind,

    /// <summary>The target's disk stands still.</summary>
    Stalled,

    /// <summary>The target stood still a moment ago.</summary>
    Paused,

    /// <summary>The target does not answer the leader.</summary>
    Silent,

    /// <summary>The target did not take leadership within an election timeout; this node goes on.</summary>
    NotTaken,
}

/// <summary>
/// A transfer of leadership that an administrator asked for. Made by the caller, answered once by the group's loop;
/// <see cref="Answered"/> from any thread.
/// </summary>
/// <param name="group">The group.</param>
internal sealed class LeaderMove(GroupId group)
{
    private readonly TaskCompletionSource<MoveResult> _answer = new(TaskCreationOptions.RunContinuationsAsynchronously);

    /// <summary>The group.</summary>
    public GroupId Group => group;

    /// <summary>The next leader; none: the follower with the longest log.</summary>
    public NodeId To { get; init; }

    /// <summary>The next leader is the one that placement prefers, which need not keep leadership.</summary>
    public bool ToPreferred { get; init; }

    /// <summary>The member that was chosen; none: nobody. Set before the answer.</summary>
    public NodeId Target { get; set; }

    /// <summary>The term in which it was asked for. Set before the answer.</summary>
    public Term Term { get; set; }

    /// <summary>Completes when the move is answered, which it may never be when the node stops.</summary>
    public Task<MoveResult> Answered => _answer.Task;

    /// <summary>Answers it; a second answer has no effect.</summary>
    public void Answer(MoveResult result) => _answer.TrySetResult(result);
}
