using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// How a voter that lost its directory earns its vote back. Its earlier life may have voted for a candidate and acknowledged
/// entries to a leader, and nobody can tell which. But a candidate has its term on its disk before it asks for a vote, and so has a
/// leader; so the latest term of the other voters, each asked after this start, is at least as late as every such promise. From
/// there on: no vote in a term up to that one; nothing that a leader of an earlier term counts; and no vote at all before the
/// own log holds what a leader of such a term or a later one had after this start, since that is all that was
/// acknowledged and may be committed. Owned by one core; not thread-safe.
/// </summary>
/// <remarks>
/// An amnesiac member of a volatile group has lost its log alone: term and vote are on its disk, and the own term is at least as late as every promise. It need ask nobody but
/// the leader, and follows the second half of the rule.
/// </remarks>
internal sealed class Rejoining(RaftConfig config, Members members, Standing standing, EntryLog log)
{
    private readonly bool[] _told = new bool[members.Voters.Length];
    private int _missing = standing.Voting == VotingRight.Amnesiac ? 0 : members.Voters.Length - 1;
    private int _ticks = config.ElectionTicks;
    private Term _leaderTerm;
    private LogIndex _leaderLast;

    /// <summary>Every other voter has told its term.</summary>
    public bool HasAllTerms => _missing == 0;

    /// <summary>The latest of the terms told first by each voter.</summary>
    public Term Latest { get; private set; }

    /// <summary>The own log holds, durably, all that the earlier life can have acknowledged and that still counts.</summary>
    public bool IsRestored { get; private set; }

    /// <summary>Asks the voters that have not told their term, then the leader that has not told how far its log goes.</summary>
    public void Tick(Outbox outbox)
    {
        if (IsRestored || ++_ticks < config.ElectionTicks)
        {
            return;
        }

        for (int i = 0; i < _told.Length; i++)
        {
            NodeId voter = members.Voters[i];
            bool isSilentLeader = voter == standing.Leader && _leaderTerm != standing.Term;
            if (voter != members.Self && ((!HasAllTerms && !_told[i]) || isSilentLeader))
            {
                _ticks = 0;
                outbox.SendNow(new RaftMessage { Kind = RaftMessageKind.TermQuery, To = voter, Round = config.Seed });
            }
        }
    }

    /// <summary>A voter told its term, and a leader its last index. True when that was the last term to wait for.</summary>
    public bool Told(in RaftMessage reply)
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

        if (_told[number] || HasAllTerms)
        {
            return false;
        }

        _told[number] = true;
        Latest = reply.Term > Latest ? reply.Term : Latest;
        return --_missing == 0;
    }

    /// <summary>Looks whether the log has come as far as it must; <paramref name="matched"/> is how far it agrees with that of the current term's leader.</summary>
    public void Update(LogIndex matched)
    {
        // The own term is not below the latest told: that was entered when the last voter told its own.
        if (HasAllTerms && _leaderTerm == standing.Term && matched >= _leaderLast && log.DurableIndex >= _leaderLast)
        {
            IsRestored = true;
        }
    }
}
