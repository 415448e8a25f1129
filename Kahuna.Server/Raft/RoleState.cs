using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// Role, term, vote and leader of a node, with the rules that hold in every role. Shared by the parts of one core; not
/// thread-safe.
/// </summary>
internal sealed class RoleState(HardState start, VotingRight voting)
{
    private Term _savedTerm = start.Term;
    private NodeId _savedVote = start.Vote;
    private LogIndex _savedCommit = start.Commit;
    private NodeId _leaderOfTerm;
    private bool _restartUnsaved;

    public RaftRole Role { get; set; }

    public Term Term { get; private set; } = start.Term;

    public NodeId Vote { get; private set; } = start.Vote;

    public NodeId Leader { get; private set; }

    public VotingRight Voting { get; private set; } = voting;

    /// <summary>See <see cref="RaftCore.IsReluctant"/>.</summary>
    public bool IsReluctant { get; set; }

    /// <summary>
    /// The log has waited for its disk for an election timeout. This node's votes would not get out, so it neither
    /// campaigns nor grants pre-votes. Cleared when the disk works again.
    /// </summary>
    public bool IsStalled { get; set; }

    /// <summary>This node may vote and campaign.</summary>
    public bool IsVoting => Voting == VotingRight.Full;

    /// <summary>
    /// This node's acknowledgements may be counted: it has forgotten no promise of a term later than its own.
    /// </summary>
    public bool IsCounted { get; private set; } = voting == VotingRight.Full;

    /// <summary>Term or vote differ from what was last handed out, or a snapshot has replaced the log since.</summary>
    public bool PromisesUnsaved => _restartUnsaved || Term != _savedTerm || Vote != _savedVote;

    /// <summary>Enters a later term, without a vote and without a known leader.</summary>
    public void EnterTerm(Term term)
    {
        InvariantException.Require(term > Term, "terms only grow");
        Term = term;
        Vote = NodeId.None;
        Leader = NodeId.None;
        _leaderOfTerm = NodeId.None;
    }

    /// <summary>
    /// This node may vote for the candidate: it has voting rights, and in this term it has voted for the candidate, or
    /// for none and knows no leader.
    /// </summary>
    public bool CanVoteFor(NodeId candidate) =>
        IsVoting && (Vote == candidate || (Vote.IsNone && _leaderOfTerm.IsNone));

    /// <summary>
    /// This node's acknowledgements count from now on: no earlier term can hold a forgotten promise that still matters.
    /// </summary>
    public void BeginToCount() => IsCounted = true;

    public void AllowVoting()
    {
        Voting = VotingRight.Full;
        IsCounted = true;
    }

    public void GiveVote(NodeId candidate)
    {
        InvariantException.Require(Vote.IsNone || Vote == candidate, "one vote per term");
        Vote = candidate;
    }

    public void FollowLeader(NodeId leader)
    {
        InvariantException.Require(_leaderOfTerm.IsNone || _leaderOfTerm == leader, "one leader per term");
        _leaderOfTerm = leader;
        Leader = leader;
    }

    /// <summary>Forgets the leader. It may still be alive, but this node no longer relies on it.</summary>
    public void ForgetLeader() => Leader = NodeId.None;

    public bool CommitUnsaved(LogIndex commit) => commit != _savedCommit;

    /// <summary>
    /// Hands the hard state out again: a snapshot replaced the log, or the owner has more to store beside it.
    /// </summary>
    public void MarkUnsaved() => _restartUnsaved = true;

    public void MarkSaved(in HardState state)
    {
        _restartUnsaved = false;
        _savedTerm = state.Term;
        _savedVote = state.Vote;
        _savedCommit = state.Commit;
    }
}
