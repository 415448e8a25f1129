using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// A leader's duties: replication, heartbeats, check-quorum, and reads by rounds or under a lease. Idle while this node
/// does not lead. Owned by one core; not thread-safe.
/// </summary>
internal sealed class Leadership
{
    /// <summary>1,000 election timeouts: about a quarter of an hour.</summary>
    private const int PatienceMax = 512;

    private readonly Replication _replication;
    private readonly ReadRounds _reads = new();
    private readonly ReadLease _lease;
    private readonly RaftConfig _config;
    private readonly Members _members;
    private readonly EntryLog _log;
    private readonly RoleState _state;
    private readonly DoubleBuffer<ReadState> _readStates = new();
    private bool _heartbeatDue;
    private LogIndex _committed;
    private int _ticksWithoutCommit;
    private int _patience = 1;

    public Leadership(RaftConfig config, Members members, EntryLog log, RoleState state)
    {
        (_config, _members, _log, _state) = (config, members, log, state);
        _lease = new ReadLease(config);
        _replication = new Replication(config, members, log, state);
        Transfer = new LeadershipTransfer(config, members, _replication);
    }

    /// <summary>Its transfer to another member.</summary>
    public LeadershipTransfer Transfer { get; }

    public DoubleBuffer<ReadState> ReadStates => _readStates;

    public DoubleBuffer<LogFetch> Fetches => _replication.Fetches;

    public DoubleBuffer<NodeId> SnapshotsWanted => _replication.SnapshotsWanted;

    public LogIndex HeldByActive => _replication.HeldByActive;

    /// <summary>
    /// An entry of this leader's term is committed, and with it all entries of earlier terms (§5.4.2, thesis 6.4).
    /// </summary>
    private bool OwnTermCommitted => _log.TermAt(_log.CommitIndex) == _state.Term;

    public void Begin()
    {
        _replication.Begin(_log.LastIndex);
        _heartbeatDue = false;
        _ticksWithoutCommit = 0;
        _lease.Begin();
        Transfer.Begin();
        _log.Append(_state.Term, EntryKind.Empty, payloadBytes: 0, out _);
    }

    public void End(Outbox outbox)
    {
        _reads.Drop();
        Transfer.End();
        _heartbeatDue = false;
        outbox.DropLeaderMessages();
        _replication.Fetches.RemoveGathered(static _ => true);
        _replication.SnapshotsWanted.RemoveGathered(static _ => true);
    }

    /// <inheritdoc cref="RaftCore.HeardMajorityAt"/>
    public NodeTime HeardMajorityAt => _replication.Quorum.HeardAt(_state.Now);

    /// <summary>
    /// Counts one tick. False when this leader must step down: no majority answered within an election timeout (thesis
    /// 6.2), or it cannot commit and a majority without it may be able to (docs/adr/0020-failover.md).
    /// </summary>
    /// <param name="number">Heartbeats leave at multiples of <see cref="RaftConfig.HeartbeatTicks"/>.</param>
    /// <param name="yields">Others are to be elected first.</param>
    public bool Tick(ulong number, out bool yields)
    {
        yields = false;
        _replication.Tick();
        if (!_replication.Quorum.IsActive)
        {
            return false;
        }

        if (IsStuck())
        {
            yields = true;
            return false;
        }

        bool isBeat = number % (ulong)_config.HeartbeatTicks == 0;
        _heartbeatDue |= isBeat;
        Transfer.Tick(mayAskAgain: isBeat);
        return true;
    }

    /// <summary>
    /// Nothing was committed for two election timeouts, and a majority without this leader may be able to. It waits
    /// twice as long after each time in a row: where the others are gone, what keeps it from committing must have time
    /// to end, as a member that gets a snapshot.
    /// </summary>
    private bool IsStuck()
    {
        if (_log.CommitIndex != _committed)
        {
            _committed = _log.CommitIndex;
            _patience = 1;
            _ticksWithoutCommit = 0;
        }

        _ticksWithoutCommit = _committed < _log.LastIndex ? _ticksWithoutCommit + 1 : 0;
        if (_ticksWithoutCommit < 2 * _patience * _config.ElectionTicks || !_replication.Quorum.MayBeElsewhere)
        {
            return false;
        }

        _patience = Math.Min(2 * _patience, PatienceMax);
        return true;
    }

    public void OwnLogPersisted() => _replication.CommitWhatMajorityHolds();

    public void AppendAnswered(in RaftMessage reply)
    {
        if (_replication.Find(reply.From) is { } follower)
        {
            follower.Heard(_state.HeardNow);
            _replication.Answered(follower, reply);
        }
    }

    public void HeartbeatAnswered(in RaftMessage reply)
    {
        if (_replication.Find(reply.From) is not { } follower)
        {
            return;
        }

        follower.Heard(_state.HeardNow);
        follower.ReportDisk(reply.Stalled);
        if (reply.Uncounted)
        {
            follower.StopCounting();
        }

        if (reply.Hint <= _log.LastIndex && reply.Index <= _log.LastIndex)
        {
            follower.HeartbeatAnswered(reply.Hint, reply.Index, counted: !reply.Uncounted);
        }

        if (follower.Counts && reply.Round <= _reads.Newest && reply.Round > follower.ConfirmedRound)
        {
            follower.RoundConfirmed(reply.Round, _lease.IsEnough(reply.PromiseMs));
            ConfirmReads();
        }
    }

    public ulong Read() => _reads.Register();

    public void Unreachable(NodeId follower) => _replication.Find(follower)?.Unreachable();

    /// <summary>See <see cref="RaftCore.SnapshotEnded"/>.</summary>
    public void SnapshotEnded(NodeId follower, LogIndex index, bool installed) =>
        _replication.Find(follower)?.SnapshotEnded(index < _log.LastIndex ? index : _log.LastIndex, installed);

    public bool AwaitsSnapshot(NodeId member) => _replication.Find(member) is { AwaitsSnapshot: true };

    /// <summary>The member has lost its log: its earlier acknowledgements are void.</summary>
    public void Forget(NodeId member)
    {
        _replication.Find(member)?.Forget(_log.LastIndex);
        _replication.SnapshotsWanted.RemoveGathered(wanted => wanted == member);
    }

    public bool CompleteFetch(NodeId follower, LogIndex first, ReadOnlySpan<byte> entries, out RaftMessage append)
    {
        append = default;
        return _replication.Find(follower) is { } progress
            && _replication.CompleteFetch(progress, first, entries, out append);
    }

    public LogIndex MatchIndex(NodeId member) =>
        member == _members.Self ? _log.DurableIndex : _replication.Find(member)?.Match ?? default;

    public bool IsActive(NodeId member) => member == _members.Self || _replication.Find(member) is { IsActive: true };

    /// <summary>Queues the messages that are due. A second call adds nothing.</summary>
    public void Prepare(Outbox outbox)
    {
        bool roundOpened = OwnTermCommitted && ConfirmByLeaseOrOpen();

        // An in-order heartbeat names what was sent before it, so it precedes the appends of the same Ready.
        foreach (Progress follower in _replication.Others)
        {
            if (_heartbeatDue || (roundOpened && follower.Votes))
            {
                SendHeartbeat(follower, follower.Match, isInOrder: false, outbox);
            }

            if (_heartbeatDue && follower.Next.Previous() > follower.Match)
            {
                SendHeartbeat(follower, follower.Next.Previous(), isInOrder: true, outbox);
            }
        }

        _heartbeatDue = false;
        _replication.Send(outbox);
        if (Transfer.IsOn && Transfer.TryAsk(_log.LastIndex, outbox))
        {
            _lease.Forfeit();
        }
    }

    private void SendHeartbeat(Progress follower, LogIndex sent, bool isInOrder, Outbox outbox)
    {
        // A follower adopts this commit index without checking that its log matches, so it never exceeds what the
        // follower acknowledged.
        LogIndex commit = follower.Match < _log.CommitIndex ? follower.Match : _log.CommitIndex;
        outbox.SendNow(new RaftMessage
        {
            Kind = RaftMessageKind.Heartbeat,
            To = follower.Member,
            Index = sent,
            InOrder = isInOrder,
            Commit = commit,
            Hint = _log.CommitIndex,
            Round = _reads.Newest,
            PromiseMs = _lease.PromiseMs,
            AgeMs = _state.Now - HeardMajorityAt,
        });
    }

    /// <summary>
    /// Confirms the registered reads under the lease, or opens a round for them. With leases, heartbeats open rounds
    /// too, so that the lease goes on. True: a round began that is to be sent at once.
    /// </summary>
    private bool ConfirmByLeaseOrOpen()
    {
        if (_reads.HasRegistered && _lease.Holds(_state.Now))
        {
            _readStates.Add(_reads.ConfirmAll(_log.CommitIndex));
        }

        bool forReads = _reads.CanOpen;
        if (forReads)
        {
            _reads.Open(_log.CommitIndex);
        }
        else if (_heartbeatDue && _lease.IsUsed)
        {
            _reads.OpenForLease();
        }
        else
        {
            return false;
        }

        _lease.Opened(_reads.Newest, _state.Now);
        ConfirmReads();
        return forReads && _reads.AnyInFlight;
    }

    private void ConfirmReads()
    {
        if (_lease.IsUsed)
        {
            _lease.Confirmed(_replication.PromisedRoundOfMajority(_reads.Newest));
        }

        if (_reads.TryConfirm(_replication.RoundOfMajority(_reads.Newest), out ReadState confirmed))
        {
            _readStates.Add(confirmed);
        }
    }
}

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
        Quorum = new Quorum(members, _others);
    }

    public ReadOnlySpan<Progress> Others => _others;

    public Quorum Quorum { get; }

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
            other.Begin(lastIndex, _state.HeardNow);
        }
    }

    public void Tick()
    {
        foreach (Progress other in _others)
        {
            other.Tick();
        }
    }

    /// <summary>The newest read round that a majority has confirmed.</summary>
    public ulong RoundOfMajority(ulong newest) => RoundOfMajority(newest, static other => other.ConfirmedRound);

    /// <summary>
    /// The newest read round with which a majority has promised to elect no other leader for a while.
    /// </summary>
    public ulong PromisedRoundOfMajority(ulong newest) =>
        RoundOfMajority(newest, static other => other.PromisedRound);

    private ulong RoundOfMajority(ulong newest, Func<Progress, ulong> roundOf)
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
                rounds[count++] = other.Counts ? roundOf(other) : 0;
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
