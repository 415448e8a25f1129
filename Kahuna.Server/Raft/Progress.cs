using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// What a leader knows of one other member's log. It either <i>probes</i> (one append at a time, until the follower
/// confirms where the logs agree) or <i>pipelines</i> (appends leave before earlier ones are acknowledged). Owned by one
/// <see cref="Replication"/>; not thread-safe.
/// </summary>
internal sealed class Progress(NodeId member, bool votes, RaftConfig config)
{
    private LogIndex _probePrevious;
    private bool _linkLost;
    private int _ticksSinceHeard;
    private int _ticksSinceProgress;
    private int _fetchTicks;

    public NodeId Member { get; } = member;

    /// <summary>Voter; false for a learner.</summary>
    public bool Votes { get; } = votes;

    /// <summary>The follower holds the log up to here durably, in this term of leadership.</summary>
    public LogIndex Match { get; private set; }

    /// <summary>The next entry to send; everything between match and it has been sent and not acknowledged.</summary>
    public LogIndex Next { get; private set; }

    public bool IsProbing { get; private set; }

    /// <summary>The probe has been sent, or the link is lost: nothing leaves until an answer comes.</summary>
    public bool IsPaused { get; private set; }

    /// <summary>The newest read round that the follower has confirmed.</summary>
    public ulong ConfirmedRound { get; private set; }

    /// <summary>Where to send an empty append that only asks for a lost acknowledgement again; 0: nowhere.</summary>
    public LogIndex AskAgainAt { get; set; }

    public bool IsFetching => _fetchTicks > 0;

    public InFlightWindow InFlight { get; } = new(config.InFlightAppendsMax, config.InFlightBytesMax);

    public bool IsActive => _ticksSinceHeard < config.ElectionTicks;

    /// <summary>Heartbeat intervals without progress after which an acknowledgement counts as lost.</summary>
    private int StallTicks => (2 * config.HeartbeatTicks) + 1;

    /// <summary>A new leadership begins: nothing is known but the own last index.</summary>
    public void Begin(LogIndex lastIndex)
    {
        Match = default;
        ConfirmedRound = 0;
        AskAgainAt = default;
        _linkLost = false;
        _ticksSinceHeard = 0;
        _fetchTicks = 0;
        Probe(lastIndex.Next());
    }

    public void Tick()
    {
        _ticksSinceHeard++;
        _ticksSinceProgress = Next.Previous() > Match ? _ticksSinceProgress + 1 : 0;
        if (_fetchTicks > 0)
        {
            // At 0 the answer is overdue, or the pause after a failure is over: the next Ready asks again.
            _fetchTicks--;
        }
    }

    public void Heard() => _ticksSinceHeard = 0;

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

    /// <summary>The follower acknowledged everything up to <paramref name="index"/>. True when that is more than was known.</summary>
    public bool Acknowledged(LogIndex index)
    {
        bool advanced = index > Match;
        if (advanced)
        {
            Match = index;
            _ticksSinceProgress = 0;
            InFlight.FreeThrough(index);
            Next = Next > index ? Next : index.Next();
        }

        if (IsProbing && index >= Match)
        {
            // The logs agree here: pipeline from the confirmed position on. What an older probe may still carry arrives twice at worst.
            IsProbing = false;
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
        if (stale || rejected.Value == 0)
        {
            return;
        }

        LogIndex previous = retry < rejected ? retry : rejected.Previous();
        Probe((previous > Match ? previous : Match).Next());
    }

    /// <summary>
    /// The follower answered a heartbeat that had been sent when everything up to <paramref name="sent"/> was on its
    /// way; <paramref name="received"/> is how far its log agrees with the leader's, durable or not. Frames keep their order, so
    /// what lies between is lost.
    /// </summary>
    public void HeartbeatAnswered(LogIndex sent, LogIndex received)
    {
        if (_linkLost)
        {
            _linkLost = false;
            IsPaused = false;
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
    }

    public void Unreachable()
    {
        Resend(default);
        IsPaused = true;
        _linkLost = true;
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
        IsProbing = true;
        IsPaused = false;
        Next = next;
        _probePrevious = next.Previous();
        _ticksSinceProgress = 0;
        InFlight.Clear();
    }
}
