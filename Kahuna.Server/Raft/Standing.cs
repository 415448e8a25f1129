using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// Where a node stands: role, term, vote and leader, with the rules that hold for them in every role. Shared by the
/// parts of one core; not thread-safe.
/// </summary>
internal sealed class Standing(HardState start, VotingRight voting)
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
    /// The owner's log has waited for its disk for an election timeout: votes of this node would not arrive, so it neither campaigns nor lets others count
    /// on its vote. Cleared when the disk moves again.
    /// </summary>
    public bool IsStalled { get; set; }

    /// <summary>This node may vote and campaign.</summary>
    public bool IsVoting => Voting == VotingRight.Full;

    /// <summary>Its acknowledgements may be counted: it has forgotten no promise that it made in a term later than its own.</summary>
    public bool IsCounted { get; private set; } = voting == VotingRight.Full;

    /// <summary>Term or vote differ from what was last handed out to be persisted, or the log was replaced since.</summary>
    public bool PromisesUnsaved => _restartUnsaved || Term != _savedTerm || Vote != _savedVote;

    /// <summary>Enters a later term, in which no vote is given yet and no leader is known.</summary>
    public void EnterTerm(Term term)
    {
        InvariantException.Require(term > Term, "terms only grow");
        Term = term;
        Vote = NodeId.None;
        Leader = NodeId.None;
        _leaderOfTerm = NodeId.None;
    }

    /// <summary>This node may vote, and no vote is given in this term yet and no leader is known, or it is this candidate's already.</summary>
    public bool CanVoteFor(NodeId candidate) => IsVoting && (Vote == candidate || (Vote.IsNone && _leaderOfTerm.IsNone));

    /// <summary>No term of the past can hold a forgotten promise to anybody whom this node still hears.</summary>
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

    /// <summary>The leader of this term may still be alive, but this node no longer relies on it.</summary>
    public void ForgetLeader() => Leader = NodeId.None;

    public bool CommitUnsaved(LogIndex commit) => commit != _savedCommit;

    /// <summary>The hard state goes out again: a state replaced the log and storage can write all of it at once, or the owner has more to store with it.</summary>
    public void MarkUnsaved() => _restartUnsaved = true;

    public void MarkSaved(in HardState state)
    {
        _restartUnsaved = false;
        _savedTerm = state.Term;
        _savedVote = state.Vote;
        _savedCommit = state.Commit;
    }
}
