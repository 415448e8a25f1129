using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>How a leader replicates to a follower.</summary>
internal enum ProgressState : byte
{
    /// <summary>One append at a time, until the follower confirms where the logs match.</summary>
    Probing,

    /// <summary>Appends are pipelined: they leave before earlier ones are acknowledged.</summary>
    Replicating,

    /// <summary>
    /// The log no longer holds the follower's next entry: nothing is appended until the follower has a snapshot or
    /// catches up another way.
    /// </summary>
    Snapshot,
}

/// <summary>
/// What a leader knows about one other member's log, and the <see cref="ProgressState"/> that follows. Owned by one
/// <see cref="Replication"/>; not thread-safe.
/// </summary>
internal sealed class Progress(NodeId member, bool votes, RaftConfig config)
{
    /// <summary>
    /// Election timeouts without a report of a stalled disk until a member counts as steady: about half a minute.
    /// </summary>
    private const int SteadyElections = 32;

    private LogIndex _probePrevious;
    private bool _linkLost;
    private int _ticksSinceHeard;
    private int _restTicks;
    private int _ticksSinceProgress;
    private int _fetchTicks;
    private int _snapshotPauseTicks;
    private bool _snapshotRequested;
    private int _ticksSinceStalled;

    public NodeId Member { get; } = member;

    /// <summary>Voter; false for a learner.</summary>
    public bool Votes { get; } = votes;

    public ProgressState State { get; private set; }

    /// <summary>
    /// The follower's answers count for commits and reads. They do not while it may have forgotten a promise, nor
    /// between the loss of its log and its next acknowledgement.
    /// </summary>
    public bool Counts { get; private set; }

    /// <summary>The follower has durably acknowledged the log up to this index in this leader's term.</summary>
    public LogIndex Match { get; private set; }

    /// <summary>The next entry to send. Entries between match and this one are sent but not acknowledged.</summary>
    public LogIndex Next { get; private set; }

    public bool IsProbing => State == ProgressState.Probing;

    public bool AwaitsSnapshot => State == ProgressState.Snapshot;

    /// <summary>A probe was sent, or the link was lost: nothing leaves until an answer arrives.</summary>
    public bool IsPaused { get; private set; }

    /// <summary>The newest read round that the follower has confirmed.</summary>
    public ulong ConfirmedRound { get; private set; }

    /// <summary>The newest read round with which the follower has made the promise that a lease needs.</summary>
    public ulong PromisedRound { get; private set; }

    /// <summary>
    /// Index at which to send an empty append that asks for a lost acknowledgement again; 0 for none.
    /// </summary>
    public LogIndex AskAgainAt { get; set; }

    /// <summary>The follower needs a snapshot, is active, and no transfer was requested yet.</summary>
    public bool SnapshotDue => AwaitsSnapshot && !_snapshotRequested && _snapshotPauseTicks == 0 && IsActive;

    public bool IsFetching => _fetchTicks > 0;

    public InFlightWindow InFlight { get; } = new(config.Limits.InFlightAppendsMax, config.Limits.InFlightBytesMax);

    /// <summary>The member's last heartbeat reply reported a stalled disk.</summary>
    public bool IsStalled { get; private set; }

    public bool IsActive => _ticksSinceHeard < config.ElectionTicks;

    /// <summary>The member's disk works, and its log goes on where this leader's entries are.</summary>
    public bool CanStore => !IsStalled && !AwaitsSnapshot;

    /// <summary>
    /// The last <see cref="RaftCore.Now"/> before its last message came that cannot have waited here for long.
    /// </summary>
    public NodeTime HeardAt { get; private set; }

    /// <summary>
    /// The member has not reported a stalled disk for a while, so it may take leadership. A disk that stalls once tends
    /// to stall again, and each change of leaders interrupts clients.
    /// </summary>
    public bool IsSteady => _ticksSinceStalled >= SteadyElections * config.ElectionTicks;

    /// <summary>
    /// The member has not paused lately, as far as this leader has seen, so it may take leadership. Silence counts from
    /// its last message, which may be a heartbeat interval older than the pause; the rest counts from its first message
    /// afterwards.
    /// </summary>
    public bool IsRested => _restTicks == 0;

    /// <summary>
    /// Leadership may go to a member that votes, whose answers count, that replicates entries, whose disk works, and
    /// that has not paused lately.
    /// </summary>
    public TransferObstacle Obstacle =>
        !Votes ? TransferObstacle.NoVoter
        : !Counts ? TransferObstacle.LostLog
        : AwaitsSnapshot ? TransferObstacle.AwaitsSnapshot
        : IsStalled ? TransferObstacle.IsStalled
        : !IsRested ? TransferObstacle.HasPaused
        : TransferObstacle.None;

    /// <summary>Ticks without progress after which an acknowledgement counts as lost.</summary>
    private int StallTicks => (2 * config.HeartbeatTicks) + 1;

    private bool HasPaused => config.PauseTicks > 0 && _ticksSinceHeard >= config.PauseTicks - StallTicks;

    /// <summary>
    /// The member counts its own rest from the end of its pause, this leader from its next message. One extra election
    /// timeout covers the difference of their clocks.
    /// </summary>
    private int RestTicks => config.PauseTicks + config.ElectionTicks;

    /// <summary>Resets at the beginning of a leadership, when only the leader's last index is known.</summary>
    public void Begin(LogIndex lastIndex, NodeTime now)
    {
        HeardAt = now;
        Match = default;
        Counts = true;
        ConfirmedRound = 0;
        PromisedRound = 0;
        AskAgainAt = default;
        _linkLost = false;
        _ticksSinceHeard = 0;
        _ticksSinceStalled = SteadyElections * config.ElectionTicks;
        IsStalled = false;
        _restTicks = 0;
        _fetchTicks = 0;
        Probe(lastIndex.Next());
    }

    /// <summary>The member has lost its log: its earlier answers are void.</summary>
    public void Forget(LogIndex lastIndex)
    {
        int ticksSinceHeard = _ticksSinceHeard;
        int restTicks = _restTicks;
        Begin(lastIndex, HeardAt);
        _ticksSinceHeard = ticksSinceHeard;
        _restTicks = restTicks;
        Counts = false;
    }

    public void StopCounting() => Counts = false;

    /// <summary>A counted acknowledgement has arrived. True when answers did not count before.</summary>
    public bool StartCounting()
    {
        bool news = !Counts;
        Counts = true;
        return news;
    }

    public void Tick()
    {
        _ticksSinceHeard++;
        _ticksSinceStalled = IsStalled ? 0 : Math.Min(_ticksSinceStalled + 1, int.MaxValue / 2);
        _restTicks = HasPaused ? RestTicks : Math.Max(0, _restTicks - 1);
        _ticksSinceProgress = Next.Previous() > Match ? _ticksSinceProgress + 1 : 0;
        if (_fetchTicks > 0)
        {
            // At 0 the answer is overdue, or the pause after a failure has ended: the next Ready asks again.
            _fetchTicks--;
        }

        if (_snapshotPauseTicks > 0)
        {
            _snapshotPauseTicks--;
        }
    }

    public void Heard(NodeTime now)
    {
        _ticksSinceHeard = 0;
        HeardAt = NodeTime.Max(HeardAt, now);
    }

    /// <summary>Records the disk's state from a heartbeat reply.</summary>
    public void ReportDisk(bool isStalled)
    {
        IsStalled = isStalled;
        _ticksSinceStalled = isStalled ? 0 : _ticksSinceStalled;
    }

    /// <summary>Entries up to <paramref name="last"/> have been sent, beginning at <see cref="Next"/>.</summary>
    public void Sent(LogIndex last, long bytes)
    {
        if (IsProbing)
        {
            _probePrevious = Next.Previous();
            IsPaused = true;
        }

        if (last >= Next)
        {
            InFlight.Add(last, bytes);
            Next = last.Next();
        }
    }

    /// <summary>
    /// The follower acknowledged all entries up to <paramref name="index"/>. This log starts after
    /// <paramref name="start"/>. True when match advanced.
    /// </summary>
    public bool Acknowledged(LogIndex index, LogIndex start)
    {
        bool advanced = index > Match;
        if (advanced)
        {
            Match = index;
            _ticksSinceProgress = 0;
            InFlight.FreeThrough(index);
            Next = Next > index ? Next : index.Next();
        }

        if ((IsProbing && index >= Match) || (AwaitsSnapshot && index >= start))
        {
            // The logs match here, with or without a snapshot: pipeline from the confirmed position on. At worst,
            // entries of an older probe arrive twice.
            State = ProgressState.Replicating;
            IsPaused = false;
            _linkLost = false;
            Next = Match.Next();
            InFlight.Clear();
        }

        return advanced;
    }

    /// <summary>
    /// The follower's log does not match at <paramref name="rejected"/>. <paramref name="retry"/> is the next index to
    /// probe.
    /// </summary>
    public void Rejected(LogIndex rejected, LogIndex retry)
    {
        bool stale = IsProbing ? !IsPaused || rejected != _probePrevious : rejected <= Match;
        if (stale || AwaitsSnapshot || rejected.Value == 0)
        {
            return;
        }

        LogIndex previous = retry < rejected ? retry : rejected.Previous();
        Probe((previous > Match ? previous : Match).Next());
    }

    /// <summary>
    /// The follower answered a heartbeat. Before that heartbeat, everything up to <paramref name="sent"/> had been
    /// sent; the follower's log, durable or not, matches up to <paramref name="received"/>. Frames keep their order, so
    /// the entries in between are lost. <paramref name="counted"/>: the answer counts.
    /// </summary>
    public void HeartbeatAnswered(LogIndex sent, LogIndex received, bool counted)
    {
        if (AwaitsSnapshot)
        {
            // It may have caught up with entries in flight, or with a snapshot whose acknowledgement was lost: ask for
            // an acknowledgement. Not sent below the log's start.
            AskAgainAt = received > Match ? received : default;
        }
        else if (_linkLost)
        {
            _linkLost = false;
            Resend(received);
        }
        else if (sent > received && sent > Match && sent < Next)
        {
            Resend(received);
        }
        else if (received > Match && _ticksSinceProgress >= StallTicks)
        {
            // The entries arrived, but the acknowledgement was lost or the follower's disk is slow: ask again without
            // resending.
            AskAgainAt = received;
            _ticksSinceProgress = 0;
        }
        else if (!IsPaused && (received < Match || (!Counts && counted)))
        {
            // It was restarted and does not know how far its log matches, which it must know before it may vote again.
            // Or its acknowledgements count from now on, but it sends none without an append.
            AskAgainAt = received > Match ? received : Match;
        }
    }

    /// <summary>
    /// The log was cut above <see cref="AskAgainAt"/>. Appends in flight bring their own acknowledgement; a probe below
    /// the cut brings no useful one, so probe again.
    /// </summary>
    public void CannotAsk()
    {
        if (IsProbing)
        {
            Resend(AskAgainAt);
        }
    }

    public void Unreachable()
    {
        if (AwaitsSnapshot)
        {
            // A snapshot transfer resumes by itself.
            return;
        }

        Resend(default);
        IsPaused = true;
        _linkLost = true;
    }

    /// <summary>
    /// Switches to a snapshot when the follower's next entry lies at or below <paramref name="start"/>, where the log
    /// no longer reaches. Not while an answer is awaited.
    /// </summary>
    public void FallBackBehind(LogIndex start)
    {
        if (!AwaitsSnapshot && !IsPaused && Next.Previous() < start)
        {
            Probe(Match.Next());
            State = ProgressState.Snapshot;
            _fetchTicks = 0;
            _snapshotPauseTicks = 0;
            _snapshotRequested = false;
        }
    }

    public void SnapshotRequested() => _snapshotRequested = true;

    /// <summary>The requested snapshot transfer has ended. No effect when the follower no longer needs it.</summary>
    public void SnapshotEnded(LogIndex index, bool installed)
    {
        if (!AwaitsSnapshot)
        {
            return;
        }

        if (installed)
        {
            Probe((index > Match ? index : Match).Next());
        }
        else if (_snapshotRequested)
        {
            _snapshotRequested = false;
            _snapshotPauseTicks = config.ElectionTicks;
        }
    }

    /// <summary>The follower has answered a round, with the promise that a lease needs or without.</summary>
    public void RoundConfirmed(ulong round, bool isPromised)
    {
        ConfirmedRound = Math.Max(ConfirmedRound, round);
        PromisedRound = isPromised ? Math.Max(PromisedRound, round) : PromisedRound;
    }

    public void FetchBegun() => _fetchTicks = 2 * config.ElectionTicks;

    /// <summary>Storage has answered a fetch. After a failure the leader retries at a later tick.</summary>
    public void FetchEnded(bool failed) => _fetchTicks = failed ? config.HeartbeatTicks : 0;

    private void Resend(LogIndex received)
    {
        LogIndex known = IsProbing && _probePrevious > Match ? _probePrevious : Match;
        Probe((received > Match ? received : known).Next());
    }

    private void Probe(LogIndex next)
    {
        State = ProgressState.Probing;
        IsPaused = false;
        Next = next;
        _probePrevious = next.Previous();
        _ticksSinceProgress = 0;
        InFlight.Clear();
    }
}

/// <summary>
/// The unacknowledged appends to one follower, bounded in number and bytes. Owned by one <see cref="Progress"/>; not
/// thread-safe.
/// </summary>
internal sealed class InFlightWindow(int appendsMax, long bytesMax)
{
    private Sent[] _ring = new Sent[Math.Min(16, appendsMax)];
    private int _head;
    private int _count;
    private long _bytes;

    /// <summary>
    /// No further append may leave. One append may exceed the byte limit; otherwise a large entry could never leave.
    /// </summary>
    public bool IsFull => _count >= appendsMax || _bytes >= bytesMax;

    public void Add(LogIndex last, long bytes)
    {
        if (_count == _ring.Length)
        {
            Grow();
        }

        _ring[(_head + _count) % _ring.Length] = new Sent(last, bytes);
        _count++;
        _bytes += bytes;
    }

    /// <summary>Frees all appends up to <paramref name="match"/>, which are acknowledged.</summary>
    public void FreeThrough(LogIndex match)
    {
        while (_count > 0 && _ring[_head].Last <= match)
        {
            _bytes -= _ring[_head].Bytes;
            _head = (_head + 1) % _ring.Length;
            _count--;
        }
    }

    public void Clear()
    {
        _head = 0;
        _count = 0;
        _bytes = 0;
    }

    private void Grow()
    {
        var larger = new Sent[Math.Min(_ring.Length * 2, appendsMax)];
        for (int i = 0; i < _count; i++)
        {
            larger[i] = _ring[(_head + i) % _ring.Length];
        }

        _ring = larger;
        _head = 0;
    }

    private readonly record struct Sent(LogIndex Last, long Bytes);
}

/// <summary>
/// What the voters add up to, as their leader hears them. Owned by one leader's <see cref="Replication"/>; not
/// thread-safe.
/// </summary>
/// <param name="members">The members.</param>
/// <param name="others">All of them but this node.</param>
internal sealed class Quorum(Members members, Progress[] others)
{
    private readonly int _self = members.SelfVotes ? 1 : 0;

    /// <summary>
    /// A majority of the voters, including this node, answered within the last election timeout. A voter that lost its
    /// log does not count: a leader that depends on it cannot commit, and must not prevent the election of one that
    /// can.
    /// </summary>
    public bool IsActive =>
        _self + Count(static other => other is { Counts: true, IsActive: true }) >= members.Majority;

    /// <summary>
    /// This leader hears too few members that can store entries now, and the others may be a majority without it:
    /// members that it does not hear may hear each other.
    /// </summary>
    public bool MayBeElsewhere =>
        _self + Count(static other => other is { Counts: true, IsActive: true, CanStore: true }) < members.Majority
            && Count(static other => !other.IsActive || other.CanStore) >= members.Majority;

    /// <inheritdoc cref="RaftCore.HeardMajorityAt"/>
    public NodeTime HeardAt(NodeTime now)
    {
        Span<long> times = stackalloc long[members.Voters.Length];
        int count = 0;
        if (members.SelfVotes)
        {
            times[count++] = now.Ms;
        }

        foreach (Progress other in others)
        {
            if (other is { Votes: true, Counts: true })
            {
                times[count++] = other.HeardAt.Ms;
            }
        }

        times[..count].Sort();
        return count < members.Majority ? default : new NodeTime(times[count - members.Majority]);
    }

    private int Count(Func<Progress, bool> which)
    {
        int count = 0;
        foreach (Progress other in others)
        {
            count += other.Votes && which(other) ? 1 : 0;
        }

        return count;
    }
}
