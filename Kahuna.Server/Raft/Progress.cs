using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// What a leader knows of one other member's log, and which <see cref="ProgressState"/> follows from it. Owned by one
/// <see cref="Replication"/>; not thread-safe.
/// </summary>
internal sealed class Progress(NodeId member, bool votes, RaftConfig config)
{
    /// <summary>Election timeouts without a word of a standing disk until a member counts as steady: about half a minute.</summary>
    private const int SteadyElections = 32;

    private LogIndex _probePrevious;
    private bool _linkLost;
    private int _ticksSinceHeard;
    private int _restTicks;
    private int _ticksSinceProgress;
    private int _fetchTicks;
    private int _snapshotPauseTicks;
    private bool _snapshotTold;
    private int _ticksSinceStalled;

    public NodeId Member { get; } = member;

    /// <summary>Voter; false for a learner.</summary>
    public bool Votes { get; } = votes;

    public ProgressState State { get; private set; }

    /// <summary>
    /// What the follower says is counted for commits and reads. Not while it may have forgotten a promise, and not
    /// between its return without a log and its next acknowledgement.
    /// </summary>
    public bool Counts { get; private set; }

    /// <summary>The follower holds the log up to here durably, in this term of leadership.</summary>
    public LogIndex Match { get; private set; }

    /// <summary>The next entry to send; everything between match and it has been sent and not acknowledged.</summary>
    public LogIndex Next { get; private set; }

    public bool IsProbing => State == ProgressState.Probing;

    public bool AwaitsSnapshot => State == ProgressState.Snapshot;

    /// <summary>The probe has been sent, or the link is lost: nothing leaves until an answer comes.</summary>
    public bool IsPaused { get; private set; }

    /// <summary>The newest read round that the follower has confirmed.</summary>
    public ulong ConfirmedRound { get; private set; }

    /// <summary>Where to send an empty append that only asks for a lost acknowledgement again; 0: nowhere.</summary>
    public LogIndex AskAgainAt { get; set; }

    /// <summary>The follower needs a snapshot, it has not been told yet, and the follower is there to take it.</summary>
    public bool SnapshotDue => AwaitsSnapshot && !_snapshotTold && _snapshotPauseTicks == 0 && IsActive;

    public bool IsFetching => _fetchTicks > 0;

    public InFlightWindow InFlight { get; } = new(config.Limits.InFlightAppendsMax, config.Limits.InFlightBytesMax);

    /// <summary>Its disk stands still, as it said last.</summary>
    public bool IsStalled { get; private set; }

    public bool IsActive => _ticksSinceHeard < config.ElectionTicks;

    /// <summary>
    /// It may be given leadership: it has not said for a while that its disk stands still. A disk that hangs once hangs again, and each change of leaders
    /// costs its callers a moment.
    /// </summary>
    public bool IsSteady => _ticksSinceStalled >= SteadyElections * config.ElectionTicks;

    /// <summary>
    /// It may be given leadership: it has not stood still lately, as far as this leadership has seen. Its silence is counted from the last word on, which may
    /// be a heartbeat interval older than its standstill, and its rest from the first word afterwards.
    /// </summary>
    public bool IsRested => _restTicks == 0;

    /// <summary>Heartbeat intervals without progress after which an acknowledgement counts as lost.</summary>
    private int StallTicks => (2 * config.HeartbeatTicks) + 1;

    private bool HasStoodStill => config.StandstillTicks > 0 && _ticksSinceHeard >= config.StandstillTicks - StallTicks;

    /// <summary>Its own count of the rest begins when it goes on, and this one when it is heard: one election timeout more covers clocks that differ.</summary>
    private int RestTicks => config.StandstillTicks + config.ElectionTicks;

    /// <summary>A new leadership begins: nothing is known but the own last index.</summary>
    public void Begin(LogIndex lastIndex)
    {
        Match = default;
        Counts = true;
        ConfirmedRound = 0;
        AskAgainAt = default;
        _linkLost = false;
        _ticksSinceHeard = 0;
        _ticksSinceStalled = SteadyElections * config.ElectionTicks;
        IsStalled = false;
        _restTicks = 0;
        _fetchTicks = 0;
        Probe(lastIndex.Next());
    }

    /// <summary>The member came back without its log: what it said before is void.</summary>
    public void Forget(LogIndex lastIndex)
    {
        int ticksSinceHeard = _ticksSinceHeard;
        int restTicks = _restTicks;
        Begin(lastIndex);
        _ticksSinceHeard = ticksSinceHeard;
        _restTicks = restTicks;
        Counts = false;
    }

    public void StopCounting() => Counts = false;

    /// <summary>An acknowledgement that may be counted has come. True when that is news.</summary>
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
        _restTicks = HasStoodStill ? RestTicks : Math.Max(0, _restTicks - 1);
        _ticksSinceProgress = Next.Previous() > Match ? _ticksSinceProgress + 1 : 0;
        if (_fetchTicks > 0)
        {
            // At 0 the answer is overdue, or the pause after a failure is over: the next Ready asks again.
            _fetchTicks--;
        }

        if (_snapshotPauseTicks > 0)
        {
            _snapshotPauseTicks--;
        }
    }

    public void Heard() => _ticksSinceHeard = 0;

    /// <summary>What the member says of its disk.</summary>
    public void DiskSaid(bool isStalled)
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
    /// The follower acknowledged everything up to <paramref name="index"/>; the own log begins behind <paramref name="start"/>.
    /// True when that is more than was known.
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
            // The logs agree here, by a snapshot or without: pipeline from the confirmed position on. What an older probe may still carry arrives twice at worst.
            State = ProgressState.Replicating;
            IsPaused = false;
            _linkLost = false;
            Next = Match.Next();
            InFlight.Clear();
        }

        return advanced;
    }

    /// <summary>The follower's log does not match at <paramref name="rejected"/>; <paramref name="retry"/> is the index to try before it.</summary>
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
    /// The follower answered a heartbeat that had been sent when everything up to <paramref name="sent"/> was on its
    /// way; <paramref name="received"/> is how far its log agrees with the leader's, durable or not. Frames keep their order, so
    /// what lies between is lost. <paramref name="counted"/>: the answer may be counted.
    /// </summary>
    public void HeartbeatAnswered(LogIndex sent, LogIndex received, bool counted)
    {
        if (AwaitsSnapshot)
        {
            // It may have got there by what was under way, or by a snapshot whose acknowledgement is lost: ask for one. It is not sent where the log is cut.
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
            // Everything arrived but the acknowledgement did not, or the follower's disk is slow: ask, without sending anything again.
            AskAgainAt = received;
            _ticksSinceProgress = 0;
        }
        else if (!IsPaused && (received < Match || (!Counts && counted)))
        {
            // It was restarted and does not know how far its log agrees, which one that rejoins must before it votes; or its acknowledgements count from
            // now on, but it has none to give without an append.
            AskAgainAt = received > Match ? received : Match;
        }
    }

    /// <summary>The log was cut above <see cref="AskAgainAt"/>. What is in flight answers for itself; a probe that lies below as well gets no answer that helps.</summary>
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
            // The transfer has a resumption of its own.
            return;
        }

        Resend(default);
        IsPaused = true;
        _linkLost = true;
    }

    /// <summary>What the follower needs next lies at or below <paramref name="start"/>: only a snapshot can bring it there. Not while an answer is awaited.</summary>
    public void FallBackBehind(LogIndex start)
    {
        if (!AwaitsSnapshot && !IsPaused && Next.Previous() < start)
        {
            Probe(Match.Next());
            State = ProgressState.Snapshot;
            _fetchTicks = 0;
            _snapshotPauseTicks = 0;
            _snapshotTold = false;
        }
    }

    public void SnapshotTold() => _snapshotTold = true;

    /// <summary>The transfer that was asked for has ended. Without effect when the follower no longer needs it.</summary>
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
        else if (_snapshotTold)
        {
            _snapshotTold = false;
            _snapshotPauseTicks = config.ElectionTicks;
        }
    }

    public void RoundConfirmed(ulong round) => ConfirmedRound = Math.Max(ConfirmedRound, round);

    public void FetchBegun() => _fetchTicks = 2 * config.ElectionTicks;

    /// <summary>Storage has answered. After a failure it is asked again at a later tick.</summary>
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
