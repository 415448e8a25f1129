using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// A leader's copying of its log: which appends leave for whom, what their answers mean, and what is committed by them
/// (Raft §5.3, §5.4.2). Owned by one <see cref="Leadership"/>; not thread-safe.
/// </summary>
internal sealed class Replication
{
    private readonly RaftConfig _config;
    private readonly Members _members;
    private readonly EntryLog _log;
    private readonly Standing _standing;
    private readonly Progress[] _others;
    private readonly Handover<LogFetch> _fetches = new();
    private readonly Handover<NodeId> _snapshotsWanted = new();

    public Replication(RaftConfig config, Members members, EntryLog log, Standing standing)
    {
        _config = config;
        _members = members;
        _log = log;
        _standing = standing;
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

    public Handover<LogFetch> Fetches => _fetches;

    /// <summary>Followers that need a snapshot, each told once per need.</summary>
    public Handover<NodeId> SnapshotsWanted => _snapshotsWanted;

    /// <summary>Up to here every active follower holds the log: what memory need not keep for them.</summary>
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
    /// A majority of the voters, this node included, answered within the last election timeout. Who has come back without its log answers, and confirms nothing:
    /// a leader that needs it cannot commit, and must not keep others from electing one that can.
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
    /// Commits what a majority holds durably, if it is of this term: an entry of an earlier term is committed only by
    /// a later one (§5.4.2). The own log counts as far as it is on the own disk.
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
        if (index > _log.CommitIndex && _log.TermAt(index) == _standing.Term)
        {
            _log.Commit(index);
        }
    }

    /// <summary>A follower acknowledged or refused an append.</summary>
    public void Answered(Progress follower, in RaftMessage reply)
    {
        if (reply.Uncounted)
        {
            follower.StopCounting();
        }

        if (reply.Reject)
        {
            // The hint is the last index of the follower at which the terms could agree; the own log skips whole terms from there (§5.3).
            // When that leads below the own start, 0 stands for it: nothing there can be probed, so that a snapshot is next.
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

    /// <summary>Queues the appends, fetches and needs for snapshots that may go now: all new entries in one append per follower, in more when they exceed its size.</summary>
    public void Send(Outbox outbox)
    {
        foreach (Progress follower in _others)
        {
            SendTo(follower, outbox);
        }
    }

    /// <summary>Entries that storage read for a follower. True with the append that carries them.</summary>
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
                follower.SnapshotTold();
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
                // Where the logs agree is found with the terms alone, before anything is read from storage.
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

    /// <summary>There is something to send, and nothing to wait for. A probe may have nothing behind it: it asks whether the logs agree at their end.</summary>
    private bool MayAppend(Progress follower) =>
        !follower.IsPaused && !follower.IsFetching && !follower.InFlight.IsFull
        && (follower.Next <= _log.LastIndex || (follower.IsProbing && follower.Match < _log.LastIndex));

    private RaftMessage Append(Progress follower, LogIndex previous, int count) => new()
    {
        Kind = RaftMessageKind.Append,
        To = follower.Member,
        Term = _standing.Term,
        Index = previous,
        LogTerm = _log.TermAt(previous),
        Commit = _log.CommitIndex,
        EntryCount = count,
    };

    /// <summary>Counts entries read from storage; false when they are not the entries of this log from <paramref name="first"/> on.</summary>
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
