using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// Where a node stands: role, term, vote and leader, with the rules that hold for them in every role. Shared by the
/// parts of one core; not thread-safe.
/// </summary>
internal sealed class Standing(HardState start)
{
    private Term _savedTerm = start.Term;
    private NodeId _savedVote = start.Vote;
    private LogIndex _savedCommit = start.Commit;
    private NodeId _leaderOfTerm;

    public RaftRole Role { get; set; }

    public Term Term { get; private set; } = start.Term;

    public NodeId Vote { get; private set; } = start.Vote;

    public NodeId Leader { get; private set; }

    /// <summary>Term or vote differ from what was last handed out to be persisted.</summary>
    public bool PromisesUnsaved => Term != _savedTerm || Vote != _savedVote;

    /// <summary>Enters a later term, in which no vote is given yet and no leader is known.</summary>
    public void EnterTerm(Term term)
    {
        InvariantException.Require(term > Term, "terms only grow");
        Term = term;
        Vote = NodeId.None;
        Leader = NodeId.None;
        _leaderOfTerm = NodeId.None;
    }

    /// <summary>No vote is given in this term yet and no leader is known, or it is this candidate's already.</summary>
    public bool CanVoteFor(NodeId candidate) => Vote == candidate || (Vote.IsNone && _leaderOfTerm.IsNone);

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

    public void MarkSaved(in HardState state)
    {
        _savedTerm = state.Term;
        _savedVote = state.Vote;
        _savedCommit = state.Commit;
    }
}
