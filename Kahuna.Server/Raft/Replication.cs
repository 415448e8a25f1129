using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// A leader's log replication: which appends to send, what their replies mean, and what they commit (Raft §5.3,
/// §5.4.2). Owned by one <see cref="Leadership"/>; not thread-safe.
/// </summary>
internal sealed class Replication
{
    private readonly RaftConfig _config;
    private readonly Members _members;
    private readonly EntryLog _log;
    private readonly RoleState _state;
    private readonly Progress[] _others;
    private readonly DoubleBuffer<LogFetch> _fetches = new();
    private readonly DoubleBuffer<NodeId> _snapshotsWanted = new();

    public Replication(RaftConfig config, Members members, EntryLog log, RoleState state)
    {
        _config = config;
        _members = members;
        _log = log;
        _state = state;
        var others = new List<Progress>();
        foreach (NodeId voter in members.Voters)
        {
            if (voter != members.Self)
            {
                others.Add(new Progress(voter, votes: true, config));
            }
        }

        foreach (NodeId learner in members.Learners)
        {
            if (learner != members.Self)
            {
                others.Add(new Progress(learner, votes: false, config));
            }
        }

        _others = [.. others];
    }

    public ReadOnlySpan<Progress> Others => _others;

    public DoubleBuffer<LogFetch> Fetches => _fetches;

    /// <summary>Followers that need a snapshot, each once per need.</summary>
    public DoubleBuffer<NodeId> SnapshotsWanted => _snapshotsWanted;

    /// <summary>
    /// The index up to which every active follower holds the log, so that memory need not keep it for them.
    /// </summary>
    public LogIndex HeldByActive
    {
        get
        {
            LogIndex held = _log.LastIndex;
            foreach (Progress other in _others)
            {
                LogIndex match = other.Match > _log.Start ? other.Match : _log.Start;
                if (other.IsActive && match < held)
                {
                    held = match;
                }
            }

            return held;
        }
    }

    public Progress? Find(NodeId member)
    {
        foreach (Progress other in _others)
        {
            if (other.Member == member)
            {
                return other;
            }
        }

        return null;
    }

    public void Begin(LogIndex lastIndex)
    {
        foreach (Progress other in _others)
        {
            other.Begin(lastIndex);
        }
    }

    public void Tick()
    {
        foreach (Progress other in _others)
        {
            other.Tick();
        }
    }

    /// <summary>
    /// A majority of the voters, including this node, answered within the last election timeout. A voter that lost its
    /// log does not count: a leader that depends on it cannot commit, and must not prevent the election of one that
    /// can.
    /// </summary>
    public bool HasActiveQuorum()
    {
        int active = _members.SelfVotes ? 1 : 0;
        foreach (Progress other in _others)
        {
            active += other.Votes && other.Counts && other.IsActive ? 1 : 0;
        }

        return active >= _members.Majority;
    }

    /// <summary>The newest read round that a majority has confirmed.</summary>
    public ulong RoundOfMajority(ulong newest)
    {
        Span<ulong> rounds = stackalloc ulong[_members.Voters.Length];
        int count = 0;
        if (_members.SelfVotes)
        {
            rounds[count++] = newest;
        }

        foreach (Progress other in _others)
        {
            if (other.Votes)
            {
                rounds[count++] = other.Counts ? other.ConfirmedRound : 0;
            }
        }

        return _members.ReachedByMajority(rounds);
    }

    /// <summary>
    /// Commits what a majority holds durably, if it is of this term: entries of earlier terms are committed only
    /// through a later one (§5.4.2). This node counts with its durable index.
    /// </summary>
    public void CommitWhatMajorityHolds()
    {
        Span<ulong> matches = stackalloc ulong[_members.Voters.Length];
        int count = 0;
        if (_members.SelfVotes)
        {
            matches[count++] = _log.DurableIndex.Value;
        }

        foreach (Progress other in _others)
        {
            if (other.Votes)
            {
                matches[count++] = other.Counts ? other.Match.Value : 0;
            }
        }

        var index = new LogIndex(_members.ReachedByMajority(matches));
        if (index > _log.CommitIndex && _log.TermAt(index) == _state.Term)
        {
            _log.Commit(index);
        }
    }

    /// <summary>Handles a follower's acknowledgement or refusal of an append.</summary>
    public void Answered(Progress follower, in RaftMessage reply)
    {
        if (reply.Uncounted)
        {
            follower.StopCounting();
        }

        if (reply.Reject)
        {
            // The hint is the follower's last index at which the terms could match; this log skips whole terms from
            // there (§5.3). Below this log's start the result is 0: nothing there can be probed, so a snapshot follows.
            LogIndex hint = reply.Hint < reply.Index ? reply.Hint : reply.Index;
            follower.Rejected(reply.Index, _log.LastAtMost(hint, reply.LogTerm));
        }
        else if (reply.Index <= _log.LastIndex)
        {
            bool news = follower.Acknowledged(reply.Index, _log.Start);
            news |= !reply.Uncounted && follower.StartCounting();
            if (news && follower.Votes)
            {
                CommitWhatMajorityHolds();
            }
        }
    }

    /// <summary>
    /// Queues the appends, fetches and snapshot requests that are due. A follower's new entries travel in one append,
    /// or in several when they exceed its size.
    /// </summary>
    public void Send(Outbox outbox)
    {
        foreach (Progress follower in _others)
        {
            SendTo(follower, outbox);
        }
    }

    /// <summary>Handles entries that storage has read for a follower. True with the append that carries them.</summary>
    public bool CompleteFetch(Progress follower, LogIndex first, ReadOnlySpan<byte> entries, out RaftMessage append)
    {
        append = default;
        if (!follower.IsFetching)
        {
            return false;
        }

        bool usable = TryCount(first, entries, out int count) && count > 0 && first > _log.Start;
        follower.FetchEnded(failed: !usable);
        if (!usable || first != follower.Next || follower.IsPaused)
        {
            return false;
        }

        append = Append(follower, first.Previous(), count);
        append.From = _members.Self;
        follower.Sent(first + (ulong)(count - 1), entries.Length);
        return true;
    }

    private void SendTo(Progress follower, Outbox outbox)
    {
        if (follower.AskAgainAt.Value > 0)
        {
            if (follower.AskAgainAt < _log.Start)
            {
                follower.CannotAsk();
            }
            else if (follower.AskAgainAt <= _log.LastIndex)
            {
                outbox.SendNow(Append(follower, follower.AskAgainAt, 0));
            }

            follower.AskAgainAt = default;
        }

        follower.FallBackBehind(_log.Start);
        if (follower.AwaitsSnapshot)
        {
            if (follower.SnapshotDue)
            {
                follower.SnapshotRequested();
                _snapshotsWanted.Add(follower.Member);
            }

            return;
        }

        while (MayAppend(follower))
        {
            LogIndex first = follower.Next;
            bool isInMemory = first >= _log.FirstInMemory && first <= _log.LastIndex;
            if (isInMemory)
            {
                int count = _log.CountWithin(first, _config.Limits.AppendBytesMax);
                LogIndex last = first + (ulong)(count - 1);
                outbox.SendNow(Append(follower, first.Previous(), count));
                follower.Sent(last, _log.BytesBetween(first, last));
            }
            else if (follower.IsProbing && first.Previous() > follower.Match)
            {
                // Find the matching index by terms alone, before anything is read from storage.
                outbox.SendNow(Append(follower, first.Previous(), 0));
                follower.Sent(first.Previous(), 0);
            }
            else
            {
                _fetches.Add(new LogFetch(follower.Member, first, _config.Limits.AppendBytesMax));
                follower.FetchBegun();
            }
        }
    }

    /// <summary>An append may leave now. A probe may be empty: it asks whether the logs match at their end.</summary>
    private bool MayAppend(Progress follower) =>
        !follower.IsPaused && !follower.IsFetching && !follower.InFlight.IsFull
        && (follower.Next <= _log.LastIndex || (follower.IsProbing && follower.Match < _log.LastIndex));

    private RaftMessage Append(Progress follower, LogIndex previous, int count) => new()
    {
        Kind = RaftMessageKind.Append,
        To = follower.Member,
        Term = _state.Term,
        Index = previous,
        LogTerm = _log.TermAt(previous),
        Commit = _log.CommitIndex,
        EntryCount = count,
    };

    /// <summary>
    /// Counts entries read from storage. False when they are not this log's entries from <paramref name="first"/> on.
    /// </summary>
    private bool TryCount(LogIndex first, ReadOnlySpan<byte> entries, out int count)
    {
        count = 0;
        ReadOnlySpan<byte> rest = entries;
        while (!rest.IsEmpty)
        {
            if (!EntryCodec.TryRead(ref rest, out Term term, out _, out _) || !_log.Matches(first + (ulong)count, term))
            {
                return false;
            }

            count++;
        }

        return true;
    }
}
