using Kahuna.Client.Wire.Buffers;
using Kahuna.Client.Wire.Commands;
using Kahuna.Server.Partitions.Ephemeral;
using Kahuna.Server.Partitions.Locks;
using Kahuna.Server.Partitions.States;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.Sessions;

namespace Kahuna.Server.Partitions;

/// <summary>
/// What a leader proposes without being asked: to remove keys whose time is over, to end leases, to forget sessions that nobody can need, to let keys go when there is no room. Each only while none of its kind is
/// under way. Owned by a partition's <see cref="ClientDesk"/>; not thread-safe.
/// </summary>
internal sealed class LeaderChores(GroupId group, LoopOptions options, StateDesk states, EphemeralMemory memory, ProposalQueue proposals, LockDesk locks)
{
    /// <summary>Where keys have to go, it is looked after so many turns how much room there is: a few ms of a busy partition.</summary>
    private const int TurnsBetweenWeighings = 32;

    private LogIndex _evictedThrough;
    private bool _sweeping;
    private bool _forgetting;
    private bool _unlocking;
    private int _turnsUntilWeighed;
    private long _steadySinceMs;

    private CommandDurability Level => group.IsEphemeral ? CommandDurability.Ephemeral : CommandDurability.Persistent;

    /// <summary>This node leads from now on.</summary>
    public void BeginServing(long nowMs)
    {
        _evictedThrough = default;
        _steadySinceMs = nowMs;
        locks.BeginServing();
    }

    /// <summary>What was proposed is gone, or will not be seen: it may be proposed again.</summary>
    public void Drop()
    {
        _sweeping = false;
        _forgetting = false;
        _unlocking = false;
    }

    /// <summary>A command was applied.</summary>
    public void Applied(CommandKind kind)
    {
        _sweeping &= kind != CommandKind.ExpireSweep;
        _forgetting &= kind != CommandKind.SessionSweep;
        _unlocking &= kind != CommandKind.LockSweep;
    }

    /// <summary>A tick: proposes what is due.</summary>
    /// <param name="nowMs">Monotonic ms of this node.</param>
    /// <param name="steadySinceMs">Since when the node has not stood still, on the same clock.</param>
    /// <param name="clusterMs">The cluster's time.</param>
    /// <param name="isDraining">The node stops.</param>
    public void Tick(long nowMs, long steadySinceMs, long clusterMs, bool isDraining)
    {
        if (steadySinceMs > _steadySinceMs)
        {
            // What this node was sent meanwhile may have waited just as long, and must find its session.
            _steadySinceMs = steadySinceMs;
            locks.BeginServing();
        }

        _turnsUntilWeighed = 0;
        if (isDraining)
        {
            return;
        }

        if (!_sweeping && states.State.HasExpired(clusterMs))
        {
            Propose(CommandKind.ExpireSweep, options.SweepKeysMax);
            _sweeping = true;
        }

        if (!_unlocking && locks.Sweep(clusterMs, Level) is { } sweep)
        {
            proposals.Add(sweep.Written, null, 0);
            sweep.Return();
            _unlocking = true;
        }

        if (!_forgetting && nowMs - _steadySinceMs >= options.StateLimits.CommandLifeMs)
        {
            ForgetSessions(clusterMs);
        }
    }

    /// <summary>The last entry that lets keys go.</summary>
    public void EvictedWith(LogIndex index) => _evictedThrough = index;

    /// <summary>
    /// Looks now and then how much room there is, and queues the keys that have to go; true when there are any. Not while earlier ones are on their way: what they free is not to be seen yet, and the same room
    /// would be made again and again.
    /// </summary>
    public bool TryEvict(RaftCore core)
    {
        // A busy partition takes in more between two ticks than is kept free.
        if (!group.IsEphemeral || !memory.Evicts || states.Applied < _evictedThrough || --_turnsUntilWeighed >= 0)
        {
            return false;
        }

        _turnsUntilWeighed = TurnsBetweenWeighings;
        states.Weigh(core);
        long bytes = memory.BytesToEvict;
        return bytes > 0 && Evict(((long)((double)bytes * states.State.BytesInUse / Math.Max(1, memory.Bytes))) + 1);
    }

    /// <summary>Queues keys that make up so many bytes: this partition's share of what is too much on the node.</summary>
    private bool Evict(long bytes)
    {
        bool isAny = false;
        ByteBuffer names = ByteBuffer.Rent();
        while (bytes > 0 && states.State.TryChooseVictims(names, options.EvictNamesBytesMax, ref bytes))
        {
            Command evict = new() { Kind = CommandKind.Evict, Durability = CommandDurability.Ephemeral, Value = names.Written };
            ByteBuffer command = ByteBuffer.Rent(evict.EncodedBytes);
            evict.Write(command);
            proposals.Add(command.Written, null, 0);
            command.Return();
            names.Length = 0;
            isAny = true;
        }

        names.Return();
        return isAny;
    }

    private void ForgetSessions(long clusterMs)
    {
        StateLimits limits = options.StateLimits;
        SessionTable sessions = states.State.Sessions;
        long idleMs = sessions.IsCrowded ? limits.CommandLifeMs : limits.SessionIdleMs;
        if (sessions.HasForgettable(clusterMs, idleMs))
        {
            Propose(CommandKind.SessionSweep, idleMs);
            _forgetting = true;
        }
    }

    private void Propose(CommandKind kind, long number)
    {
        Command sweep = new()
        {
            Kind = kind,
            Durability = Level,
            Flags = CommandFlags.Number,
            Number = number,
        };
        ByteBuffer scratch = ByteBuffer.Rent(64);
        sweep.Write(scratch);
        proposals.Add(scratch.Written, null, 0);
        scratch.Return();
    }
}
