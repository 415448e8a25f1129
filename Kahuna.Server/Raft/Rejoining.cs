using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// How a voter that lost its data directory regains its vote. Before the loss it may have voted for a candidate and
/// acknowledged entries to a leader, and it cannot tell which. Candidates and leaders store their term before they send
/// a request. So the latest term of the other voters, each queried after this start, is at least as late as every
/// forgotten promise. From then on three rules hold. This node gives no vote in a term up to that one. Leaders of
/// earlier terms count none of its answers. And it gives no vote at all until its log holds what a leader of that term,
/// or a later one, held after this start: everything that was acknowledged and may be committed. Owned by one core; not
/// thread-safe.
/// </summary>
/// <remarks>
/// An amnesiac member of a volatile group has lost only its log. Term and vote are on its disk, and its term is at
/// least as late as every promise. It queries only the leader, and only the last rule applies.
/// </remarks>
internal sealed class Rejoining(RaftConfig config, Members members, RoleState state, EntryLog log)
{
    private readonly bool[] _answered = new bool[members.Voters.Length];
    private int _missing = state.Voting == VotingRight.Amnesiac ? 0 : members.Voters.Length - 1;
    private int _ticks = config.ElectionTicks;
    private Term _leaderTerm;
    private LogIndex _leaderLast;

    /// <summary>Every other voter has reported its term.</summary>
    public bool HasAllTerms => _missing == 0;

    /// <summary>The latest of the terms that each voter reported first.</summary>
    public Term Latest { get; private set; }

    /// <summary>
    /// The log durably holds everything that this node can have acknowledged before the loss and that may be committed.
    /// </summary>
    public bool IsRestored { get; private set; }

    /// <summary>
    /// Queries the voters that have not reported their term, and the leader if it has not reported its last index.
    /// </summary>
    public void Tick(Outbox outbox)
    {
        if (IsRestored || ++_ticks < config.ElectionTicks)
        {
            return;
        }

        for (int i = 0; i < _answered.Length; i++)
        {
            NodeId voter = members.Voters[i];
            bool isSilentLeader = voter == state.Leader && _leaderTerm != state.Term;
            if (voter != members.Self && ((!HasAllTerms && !_answered[i]) || isSilentLeader))
            {
                _ticks = 0;
                outbox.SendNow(new RaftMessage { Kind = RaftMessageKind.TermQuery, To = voter, Round = config.Seed });
            }
        }
    }

    /// <summary>Handles a voter's term and a leader's last index. True when this was the last missing term.</summary>
    public bool TermAnswered(in RaftMessage reply)
    {
        int number = members.VoterNumber(reply.From);
        if (reply.Round != config.Seed || number < 0)
        {
            return false;
        }

        if (reply.Index.Value > 0 && reply.Term > _leaderTerm)
        {
            _leaderTerm = reply.Term;
            _leaderLast = reply.Index;
        }

        if (_answered[number] || HasAllTerms)
        {
            return false;
        }

        _answered[number] = true;
        Latest = reply.Term > Latest ? reply.Term : Latest;
        return --_missing == 0;
    }

    /// <summary>
    /// Checks whether the log is restored. <paramref name="matched"/> is the index up to which it matches the current
    /// leader's log.
    /// </summary>
    public void Update(LogIndex matched)
    {
        // This node's term is not below the latest report: it entered that term with the last one.
        if (HasAllTerms && _leaderTerm == state.Term && matched >= _leaderLast && log.DurableIndex >= _leaderLast)
        {
            IsRestored = true;
        }
    }
}
