using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.KeyValues;
using Kahuna.Server.State.Rows;
using Kahuna.Server.State.Sessions;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// What a leader proposes without being asked: to remove expired keys and forget deleted ones, to end
/// leases, to forget sessions that nobody can need, to let keys go when there is no room. Late transactions it has
/// settled. Each only as far as nothing
/// of its kind is under way. Owned by a partition's <see cref="PendingRequests"/>; not thread-safe.
/// </summary>
internal sealed class Housekeeping(RequestParts parts, ProposalQueue proposals, LockWaiters locks)
{
    /// <summary>
    /// While keys are evicted, the room is checked once in this many turns: a few ms of a busy partition.
    /// </summary>
    private const int TurnsBetweenWeighings = 32;

    /// <summary>
    /// Times <see cref="LoopOptions.SweepKeysMax"/> that may be under way: 16,384 keys between two ticks, 300,000 in a
    /// second.
    /// </summary>
    private const int SweepsMax = 32;

    /// <summary>
    /// While more than this part of the uncommitted bytes that may be wait, clients' writes go first: a tick proposes
    /// sweeps of as many keys as commands were applied since the last one, since no more keys than that can be new, and
    /// of <see cref="LoopOptions.SweepKeysMax"/> at least.
    /// </summary>
    private const int BusyShare = 4;

    /// <summary>
    /// Sweeps of sessions, and of idempotency keys, that one tick proposes at most: 40,000 steps a second, more than
    /// come in at a rate that a partition keeps up with.
    /// </summary>
    private const int SessionSweepsPerTick = 32;

    /// <summary>
    /// Where slabs or rows run out, this much goes at a time: two slabs, or ten of the largest values, which have a
    /// slab each.
    /// </summary>
    private const long EvictedWhenCrowded = 2 << 20;

    private readonly LoopOptions _options = parts.Options;
    private readonly AppliedState _applied = parts.Applied;
    private readonly MemoryShare _memory = parts.Memory;
    private readonly LateTransactions _late = new(parts.Group, parts.Applied, parts.Settler);
    private LogIndex _evictedThrough;
    private int _sweeps;
    private int _forgetting;
    private int _unlocking;
    private int _turnsUntilWeighed;
    private long _commands;
    private long _commandsAtTick;
    private long _commandsAtGrant;
    private NodeTime _resumed;

    /// <summary>The group lets keys go when there is no room.</summary>
    public bool Evicts => _memory.Evicts;

    /// <summary>Claims for locks are still to be granted.</summary>
    public bool HasGrants => _applied.State.Locks.HasGrants;

    private Durability Level => parts.Group.IsEphemeral ? Durability.Ephemeral : Durability.Persistent;

    /// <summary>This node leads from now on.</summary>
    public void BeginServing(NodeTime now)
    {
        _evictedThrough = default;
        _resumed = now;
        locks.BeginServing();
    }

    /// <summary>What was proposed is gone, or will not be seen: it may be proposed again.</summary>
    public void Drop()
    {
        _sweeps = 0;
        _forgetting = 0;
        _unlocking = 0;
    }

    /// <summary>A start has replayed commands.</summary>
    public void Replayed(int commands) => _commands += commands;

    /// <summary>A command was applied.</summary>
    public void Applied(CommandKind kind)
    {
        _commands++;
        if (kind is CommandKind.ExpireSweep or CommandKind.SessionSweep or CommandKind.LockSweep)
        {
            EndSweep(kind);
        }
    }

    /// <summary>A sweep was applied: another may be proposed.</summary>
    private void EndSweep(CommandKind kind)
    {
        _sweeps -= kind == CommandKind.ExpireSweep && _sweeps > 0 ? 1 : 0;
        _forgetting -= kind == CommandKind.SessionSweep && _forgetting > 0 ? 1 : 0;
        _unlocking -= kind == CommandKind.LockSweep && _unlocking > 0 ? 1 : 0;
    }

    /// <summary>A tick: proposes what is due.</summary>
    /// <param name="now">The time of this node.</param>
    /// <param name="resumed">When the node resumed after its last pause, on the same clock.</param>
    /// <param name="clusterNow">The cluster's time.</param>
    /// <param name="isDraining">The node stops.</param>
    public void Tick(NodeTime now, NodeTime resumed, ClusterTime clusterNow, bool isDraining)
    {
        if (resumed > _resumed)
        {
            // What this node was sent meanwhile may have waited just as long, and must find its session.
            _resumed = resumed;
            locks.BeginServing();
        }

        _turnsUntilWeighed = 0;
        if (isDraining)
        {
            return;
        }

        Sweep(clusterNow);
        _commandsAtTick = _commands;
        SweepLocks(clusterNow);
        _late.Tick(now, clusterNow);

        if (_forgetting == 0 && now - _resumed >= _options.StateLimits.CommandLifeMs)
        {
            ForgetSessions(clusterNow);
        }
    }

    /// <summary>
    /// As many sweeps as there are keys for: keys are removed at the rate at which they fall due, also while clients
    /// write more than is carried out.
    /// </summary>
    private void Sweep(ClusterTime clusterNow)
    {
        int keysMax = SweepsMax * _options.SweepKeysMax;
        if (_sweeps * ExpirySweep.KeysPerCommand >= keysMax)
        {
            return;
        }

        bool isBusy = proposals.Bytes > _options.UncommittedBytesMax / BusyShare;
        int appliedSinceTick = (int)Math.Min(int.MaxValue, _commands - _commandsAtTick);
        int wanted = SweepsFor(_applied.State.CountDue(clusterNow, keysMax));
        int allowed = isBusy ? SweepsFor(Math.Max(_options.SweepKeysMax, appliedSinceTick)) : wanted;
        for (; _sweeps < wanted && allowed > 0; _sweeps++, allowed--)
        {
            Propose(CommandKind.ExpireSweep, ExpirySweep.KeysPerCommand);
        }
    }

    private static int SweepsFor(int keys) => (keys + ExpirySweep.KeysPerCommand - 1) / ExpirySweep.KeysPerCommand;

    /// <summary>
    /// While <see cref="HasGrants"/>: the next sweep does not wait for the tick. Only after something was applied: a
    /// sweep that was turned away, because leadership is being handed over, would be proposed again in the same turn,
    /// without end.
    /// </summary>
    public void GrantOn(ClusterTime clusterNow)
    {
        if (_commandsAtGrant != _commands)
        {
            _commandsAtGrant = _commands;
            SweepLocks(clusterNow);
        }
    }

    /// <summary>The last entry that lets keys go.</summary>
    public void EvictedWith(LogIndex index)
    {
        InvariantException.Require(index > _evictedThrough, "evictions are proposed in order");
        _evictedThrough = index;
    }

    /// <summary>
    /// Looks now and then how much room there is, and queues the keys that have to go; true when there are any. Not
    /// while earlier ones are on their way: what they free is not to be seen yet, and the same room would be made again
    /// and again.
    /// </summary>
    public bool TryEvict(RaftCore core)
    {
        // A busy partition takes in more between two ticks than is kept free.
        if (!_memory.Evicts || _applied.Index < _evictedThrough || --_turnsUntilWeighed >= 0)
        {
            return false;
        }

        _turnsUntilWeighed = TurnsBetweenWeighings;
        _memory.Weigh(core);
        long bytes = Math.Max(_memory.ShareToEvict(), _applied.State.IsCrowded ? EvictedWhenCrowded : 0);
        return bytes > 0 && Evict(bytes);
    }

    /// <summary>
    /// Queues keys of about this many bytes: this partition's share of what is too much on the node.
    /// </summary>
    private bool Evict(long bytes)
    {
        bool isAny = false;
        ByteBuffer names = ByteBuffer.Rent();
        while (bytes > 0 && _applied.State.TryChooseVictims(names, _options.EvictNamesBytesMax, ref bytes))
        {
            Command evict = new()
            {
                Kind = CommandKind.Evict,
                Durability = Durability.Ephemeral,
                Value = names.Written
            };
            ByteBuffer command = ByteBuffer.Rent(evict.EncodedBytes);
            evict.Write(command);
            proposals.Add(command.Written);
            command.Return();
            names.Length = 0;
            isAny = true;
        }

        names.Return();
        return isAny;
    }

    /// <summary>
    /// Not while earlier ones are on their way: what they do is not to be seen yet, and would be proposed again and
    /// again.
    /// </summary>
    private void SweepLocks(ClusterTime clusterNow)
    {
        if (_unlocking == 0)
        {
            _unlocking = locks.Sweep(clusterNow, Level, proposals);
        }
    }

    private void ForgetSessions(ClusterTime clusterNow)
    {
        StateLimits limits = _options.StateLimits;
        SessionTable sessions = _applied.State.Sessions;
        bool isPressed = _memory.IsPressed;
        long idleMs = isPressed || sessions.IsCrowded ? limits.CommandLifeMs : limits.SessionIdleMs;
        long keysIdleMs = isPressed || sessions.IsCrowdedWithKeys ? limits.CommandLifeMs : limits.SessionIdleMs;
        int sweeps = sessions.CountSweeps(clusterNow, idleMs, SessionSweepsPerTick);
        int sweepsOfKeys = sessions.CountSweepsOfKeys(clusterNow, keysIdleMs, SessionSweepsPerTick);

        // As many as have something to do: clients' commands wait behind them.
        for (int i = 0; i < Math.Max(sweeps, sweepsOfKeys); i++)
        {
            if (i < sweeps)
            {
                Propose(CommandKind.SessionSweep, idleMs);
                _forgetting++;
            }

            if (i < sweepsOfKeys)
            {
                Propose(CommandKind.SessionSweep, keysIdleMs, CommandFlags.Keyed);
                _forgetting++;
            }
        }
    }

    private void Propose(CommandKind kind, long number, CommandFlags flags = CommandFlags.None)
    {
        Command sweep = new()
        {
            Kind = kind,
            Durability = Level,
            Flags = CommandFlags.Number | flags,
            Number = number,
        };
        ByteBuffer scratch = ByteBuffer.Rent(64);
        sweep.Write(scratch);
        proposals.Add(scratch.Written);
        scratch.Return();
    }
}

/// <summary>
/// Keeps a node that was paused from beginning a session twice (docs/adr/0020-failover.md). Requests that were buffered
/// during the pause may have been retried, applied and forgotten elsewhere; they look new here. For a while nothing
/// that opens a session is taken, except by a leader that led before the pause and has found out that it still does.
/// Owned by a group's <see cref="PendingRequests"/>; not thread-safe.
/// </summary>
internal sealed class PauseGuard(TurnClock clock)
{
    private NodeTime _servingSince;
    private NodeTime _asked;
    private NodeTime _confirmed;
    private ulong _ticket;

    /// <summary>
    /// Whether a command that opens a session is refused now. A leader asks the others, so that it soon is not.
    /// </summary>
    public bool RefusesOpening(RaftCore core, bool isServing)
    {
        if (!clock.IsAfterPause)
        {
            return false;
        }

        if (!isServing || core.Role != RaftRole.Leader || _servingSince >= clock.Resumed)
        {
            return true;
        }

        if (_asked != clock.Resumed && core.TryRead(out _ticket))
        {
            _asked = clock.Resumed;
        }

        return _confirmed != clock.Resumed;
    }

    /// <summary>This node leads from now on.</summary>
    public void BeginServing() => _servingSince = clock.Now;

    /// <summary>This node leads no more: the round that it has asked for is not confirmed.</summary>
    public void LoseLeadership()
    {
        _ticket = 0;
        _asked = default;
        _confirmed = default;
    }

    /// <summary>A majority has said since the round with this ticket began that this node leads.</summary>
    public void Confirm(ulong ticket)
    {
        if (_ticket != 0 && ticket >= _ticket)
        {
            _confirmed = _asked;
        }
    }
}

/// <summary>
/// Cluster time of one partition as its leader counts it: it continues from the last stamp that the state holds and
/// advances with the leader's monotonic clock, so it never goes back and a lease never ends early. Owned by a
/// partition.
/// </summary>
internal struct ClusterClock
{
    private ClusterTime _stamp;
    private NodeTime _anchor;

    /// <summary>A new leader has applied everything of earlier terms: continue from there.</summary>
    public void Anchor(ClusterTime stateTime, NodeTime now)
    {
        _stamp = stateTime;
        _anchor = now;
    }

    /// <summary>The time now.</summary>
    public readonly ClusterTime At(NodeTime now) => _stamp + Math.Max(0, now - _anchor);
}
