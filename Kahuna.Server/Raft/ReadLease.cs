using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// A leader's lease (thesis 6.4.1, docs/adr/0056-reads-under-a-lease.md): until it ends, a majority has promised to
/// elect no other leader, so that reads need no round of heartbeats. A promise is longer than the lease that rests on
/// it, because clocks do not run equally fast. Off with <see cref="RaftConfig.PromiseMs"/> 0. Owned by one
/// <see cref="Leadership"/>; not thread-safe.
/// </summary>
internal sealed class ReadLease(RaftConfig config)
{
    /// <summary>
    /// The part of a promise that a lease lasts, in percent: it holds although one clock runs a third faster than
    /// another.
    /// </summary>
    private const int PercentOfPromise = 75;

    /// <summary>Rounds of which the beginning is remembered: more than heartbeats leave within a lease.</summary>
    private const int RoundsKept = 16;

    private readonly (ulong Number, NodeTime Opened)[] _rounds = new (ulong, NodeTime)[RoundsKept];
    private int _count;
    private NodeTime? _end;
    private bool _isForfeited;

    /// <summary>This node may have leases. A member that is alone needs none: it confirms its rounds itself.</summary>
    public bool IsUsed { get; } = config.PromiseMs > 0 && config.Voters.Count > 1;

    /// <summary>The promise that a heartbeat asks for, in ms; 0 for none.</summary>
    public int PromiseMs => IsUsed ? config.PromiseMs : 0;

    /// <summary>A promise of this length is long enough for a lease.</summary>
    public bool IsEnough(int promiseMs) => IsUsed && promiseMs >= config.PromiseMs;

    /// <summary>
    /// No other leader can have been elected until <paramref name="now"/>, which is read after the reads came in.
    /// </summary>
    public bool Holds(NodeTime now) => !_isForfeited && _end is { } end && now < end;

    /// <summary>A leadership begins, without a lease.</summary>
    public void Begin()
    {
        _count = 0;
        _end = null;
        _isForfeited = false;
    }

    /// <summary>
    /// This leader asks another member to take over. Voters elect that one whatever they have promised, and the message
    /// may arrive late, so this leadership has no lease from here on.
    /// </summary>
    public void Forfeit() => _isForfeited = true;

    /// <summary>A round begins; no message of it has left yet.</summary>
    public void Opened(ulong round, NodeTime now)
    {
        if (IsUsed)
        {
            _rounds[_count++ % RoundsKept] = (round, now);
        }
    }

    /// <summary>
    /// A majority has promised with its answers to <paramref name="round"/>. A promise begins after the round did, so
    /// the lease counts from the round's beginning.
    /// </summary>
    public void Confirmed(ulong round)
    {
        for (int i = Math.Max(0, _count - RoundsKept); i < _count; i++)
        {
            (ulong number, NodeTime opened) = _rounds[i % RoundsKept];
            NodeTime end = opened + ((long)config.PromiseMs * PercentOfPromise / 100);
            if (number <= round && (_end is not { } before || end > before))
            {
                _end = end;
            }
        }
    }
}

/// <summary>
/// What a voter has promised to its leader: for a while it elects no other. It holds also against this node's own
/// candidacy, and is counted on this node's clock, not in ticks, which may come late and close together. Owned by one
/// core; not thread-safe.
/// </summary>
/// <param name="waitMs">
/// Time from the start for which the node behaves as if it had promised, because it may have, in an earlier run; 0 for
/// none.
/// </param>
/// <param name="longestMs">
/// The longest promise that is made, in ms: no longer than the node waits after its next start. 0: none is made.
/// </param>
internal sealed class VotePromise(int waitMs, int longestMs)
{
    private NodeTime? _now;
    private NodeTime _end;

    /// <summary>The promise binds now. The time may be older than now: then it binds longer.</summary>
    public bool Binds => _now is { } now && now < _end;

    /// <summary>The node's time, read after the inputs that follow were received.</summary>
    public NodeTime Now
    {
        get => _now ?? default;
        set
        {
            if (_now is null)
            {
                _end = value + waitMs;
            }

            _now = value;
        }
    }

    /// <summary>
    /// Promises for <paramref name="ms"/> from <see cref="Now"/> on. Returns what was promised, in ms; 0 for nothing.
    /// </summary>
    public int Make(int ms)
    {
        if (_now is not { } now || ms <= 0 || ms > longestMs)
        {
            return 0;
        }

        _end = NodeTime.Max(_end, now + ms);
        return ms;
    }
}
