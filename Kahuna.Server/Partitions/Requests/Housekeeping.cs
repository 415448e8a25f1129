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
/// What a leader proposes without being asked: to remove keys whose time is over and forget deleted ones, to end
/// leases, to forget sessions that nobody can need, to let keys go when there is no room. Each only as far as nothing
/// of its kind is under way. Owned by a partition's <see cref="PendingRequests"/>; not thread-safe.
/// </summary>
internal sealed class Housekeeping(GroupId group, LoopOptions options, AppliedState applied, MemoryShare memory,
    ProposalQueue proposals, LockWaiters locks)
{
    /// <summary>
    /// Where keys have to go, it is looked after so many turns how much room there is: a few ms of a busy partition.
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
    /// Sweeps of sessions, and of idempotency keys, that one tick proposes: 40,000 steps a second, more than come in at
    /// a rate that a partition keeps up with.
    /// </summary>
    private const int SessionSweepsPerTick = 32;

    /// <summary>
    /// Where slabs or rows run out, this much goes at a time: two slabs, or ten of the largest values, which have a
    /// slab each.
    /// </summary>
    private const long EvictedWhenCrowded = 2 << 20;

    private LogIndex _evictedThrough;
    private int _sweeps;
    private int _forgetting;
    private int _unlocking;
    private int _turnsUntilWeighed;
    private bool _hasApplied;
    private int _appliedSinceTick;
    private long _resumedMs;

    private Durability Level => group.IsEphemeral ? Durability.Ephemeral : Durability.Persistent;

    /// <summary>This node leads from now on.</summary>
    public void BeginServing(long nowMs)
    {
        _evictedThrough = default;
        _resumedMs = nowMs;
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
    public void Replayed(int commands)
    {
        _hasApplied |= commands > 0;
        _appliedSinceTick += commands;
    }

    /// <summary>A command was applied.</summary>
    public void Applied(CommandKind kind)
    {
        _hasApplied = true;
        _appliedSinceTick++;
        _sweeps -= kind == CommandKind.ExpireSweep && _sweeps > 0 ? 1 : 0;
        _forgetting -= kind == CommandKind.SessionSweep && _forgetting > 0 ? 1 : 0;
        _unlocking -= kind == CommandKind.LockSweep && _unlocking > 0 ? 1 : 0;
    }

    /// <summary>A tick: proposes what is due.</summary>
    /// <param name="nowMs">Monotonic ms of this node.</param>
    /// <param name="resumedMs">When the node resumed after its last pause, on the same clock.</param>
    /// <param name="clusterMs">The cluster's time.</param>
    /// <param name="isDraining">The node stops.</param>
    public void Tick(long nowMs, long resumedMs, long clusterMs, bool isDraining)
    {
        if (resumedMs > _resumedMs)
        {
            // What this node was sent meanwhile may have waited just as long, and must find its session.
            _resumedMs = resumedMs;
            locks.BeginServing();
        }

        _turnsUntilWeighed = 0;
        if (isDraining)
        {
            return;
        }

        Sweep(clusterMs);
        _appliedSinceTick = 0;
        SweepLocks(clusterMs);

        if (_forgetting == 0 && nowMs - _resumedMs >= options.StateLimits.CommandLifeMs)
        {
            ForgetSessions(clusterMs);
        }
    }

    /// <summary>
    /// As many sweeps as there are keys for: keys are removed at the rate at which they fall due, also while clients
    /// write more than is carried out.
    /// </summary>
    private void Sweep(long clusterMs)
    {
        int keysMax = SweepsMax * options.SweepKeysMax;
        if (_sweeps * ExpirySweep.KeysPerCommand >= keysMax)
        {
            return;
        }

        bool isBusy = proposals.Bytes > options.UncommittedBytesMax / BusyShare;
        int wanted = SweepsFor(applied.State.CountDue(clusterMs, keysMax));
        int allowed = isBusy ? SweepsFor(Math.Max(options.SweepKeysMax, _appliedSinceTick)) : wanted;
        for (; _sweeps < wanted && allowed > 0; _sweeps++, allowed--)
        {
            Propose(CommandKind.ExpireSweep, ExpirySweep.KeysPerCommand);
        }
    }

    private static int SweepsFor(int keys) => (keys + ExpirySweep.KeysPerCommand - 1) / ExpirySweep.KeysPerCommand;

    /// <summary>
    /// Claims are still to be granted: the next sweep does not wait for the tick. Only after something was applied: a
    /// sweep that was turned away, because leadership is being handed over, would be proposed again in the same turn,
    /// without end.
    /// </summary>
    public void GrantOn(long clusterMs)
    {
        bool hasApplied = _hasApplied;
        _hasApplied = false;
        if (hasApplied && applied.State.Locks.HasGrants)
        {
            SweepLocks(clusterMs);
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
        if (!memory.Evicts || applied.Index < _evictedThrough || --_turnsUntilWeighed >= 0)
        {
            return false;
        }

        _turnsUntilWeighed = TurnsBetweenWeighings;
        memory.Weigh(core);
        long bytes = Math.Max(memory.ShareToEvict(), applied.State.IsCrowded ? EvictedWhenCrowded : 0);
        return bytes > 0 && Evict(bytes);
    }

    /// <summary>
    /// Queues keys that make up so many bytes: this partition's share of what is too much on the node.
    /// </summary>
    private bool Evict(long bytes)
    {
        bool isAny = false;
        ByteBuffer names = ByteBuffer.Rent();
        while (bytes > 0 && applied.State.TryChooseVictims(names, options.EvictNamesBytesMax, ref bytes))
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
    private void SweepLocks(long clusterMs)
    {
        if (_unlocking == 0)
        {
            _unlocking = locks.Sweep(clusterMs, Level, proposals);
        }
    }

    private void ForgetSessions(long clusterMs)
    {
        StateLimits limits = options.StateLimits;
        SessionTable sessions = applied.State.Sessions;
        bool isPressed = memory.IsPressed;
        long idleMs = isPressed || sessions.IsCrowded ? limits.CommandLifeMs : limits.SessionIdleMs;
        bool forgets = sessions.HasForgettable(clusterMs, idleMs);
        long keysIdleMs = isPressed || sessions.IsCrowdedWithKeys ? limits.CommandLifeMs : limits.SessionIdleMs;
        bool forgetsKeys = sessions.HasForgettableKeys(clusterMs, keysIdleMs);

        // Each command does a bounded number of steps; those that find nothing left do nothing.
        for (int i = 0; i < SessionSweepsPerTick && (forgets || forgetsKeys); i++)
        {
            if (forgets)
            {
                Propose(CommandKind.SessionSweep, idleMs);
                _forgetting++;
            }

            if (forgetsKeys)
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
