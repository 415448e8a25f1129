using System.Globalization;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.KeyValues;
using Kahuna.Server.State.Locks;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.State.Locks;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions.Requests;

/// <summary>
/// What a leader proposes by itself is proposed once, however often it is looked at before it is applied.
/// </summary>
public sealed class HousekeepingTests
{
    private const int EntryBytesMax = 64 * 1024;
    private const int SessionSweepsPerTick = 32;

    private readonly ModelCluster _cluster = new(1);
    private readonly StateMachine _state = new(new StateLimits { CommandLifeMs = 1_000 });
    private readonly ProposalQueue _proposals;
    private readonly Housekeeping _chores;

    public HousekeepingTests()
    {
        LoopOptions options = new()
        {
            Self = _cluster.Ids[0],
            Voters = _cluster.Ids,
            PreferredLeader = _ => _cluster.Ids[0],
            Seed = 1,
            StateLimits = new StateLimits { CommandLifeMs = 1_000 },
        };
        ReplyFrames replies = new(_cluster[1].Loops!.Loops[0], trace: null);
        AppliedState applied = new(_state);
        _proposals = new ProposalQueue(EntryBytesMax, replies);
        LockWaiters locks = new(
            options, new TurnClock(options.PauseMs, default), replies, applied, new ParkedReads(replies));
        RequestParts parts = new(
            new GroupId(1), options, applied, new MemoryShare(new GroupId(1), _cluster[1].Ports!, applied))
        {
            Clock = new TurnClock(options.PauseMs, default),
            LogWatch = null!,
            Replies = replies,
        };
        _chores = new Housekeeping(parts, _proposals, locks);
        _chores.BeginServing(default);
    }

    [Fact]
    public void Grants_that_were_turned_away_are_not_proposed_again_before_something_is_applied()
    {
        HoldWithWaiters(LockTable.StepsPerSweep * 3);
        _chores.Applied(CommandKind.LockRelease);
        _chores.GrantOn(_state.Time);
        int proposed = _proposals.Queued;
        Assert.True(_state.Locks.HasGrants);
        Assert.NotEqual(0, proposed);

        // Leadership is being handed over: what was queued is dropped, and the same turn looks again.
        _proposals.DropQueued(OutcomeStatus.NotLeader);
        _chores.Drop();
        for (int i = 0; i < 10; i++)
        {
            _chores.GrantOn(_state.Time);
        }

        Assert.Equal(0, _proposals.Queued);
        _chores.Applied(CommandKind.Set);
        _chores.GrantOn(_state.Time);
        Assert.Equal(proposed, _proposals.Queued);
    }

    [Fact]
    public void Grants_are_proposed_again_when_all_earlier_ones_are_applied()
    {
        HoldWithWaiters(LockTable.StepsPerSweep * 3);
        _chores.Applied(CommandKind.LockRelease);
        _chores.GrantOn(_state.Time);
        int proposed = _proposals.Queued;
        for (int i = 1; i < proposed; i++)
        {
            _chores.Applied(CommandKind.LockSweep);
            _chores.GrantOn(_state.Time);
            Assert.Equal(proposed, _proposals.Queued);
        }

        _chores.Applied(CommandKind.LockSweep);
        _chores.GrantOn(_state.Time);
        Assert.True(_proposals.Queued > proposed);
    }

    [Theory]
    [InlineData(1, 1)]
    [InlineData(320, 10)]
    [InlineData(2_000, SessionSweepsPerTick)]
    public void As_many_sweeps_of_sessions_as_have_something_to_do_and_again_when_all_are_applied(
        int sessions, int sweeps)
    {
        // Two steps each: its outcome, and the session.
        OpenSessions(sessions);
        ClusterTime later = new(100_000_000);
        _chores.Tick(new NodeTime(10_000), default, later, isDraining: false);
        int proposed = _proposals.Queued;
        Assert.InRange(proposed, sweeps, sweeps + 2);
        for (int i = 1; i < sweeps; i++)
        {
            _chores.Applied(CommandKind.SessionSweep);
            _chores.Tick(new NodeTime(10_000 + i), default, later, isDraining: false);
            Assert.Equal(proposed, _proposals.Queued);
        }

        _chores.Applied(CommandKind.SessionSweep);
        _chores.Tick(new NodeTime(20_000), default, later, isDraining: false);
        Assert.Equal(proposed + sweeps, _proposals.Queued);
    }

    [Fact]
    public void A_busy_leader_sweeps_as_many_keys_as_commands_were_applied()
    {
        const int Keys = 5_000;
        Command set = new() { Kind = CommandKind.Set, Flags = CommandFlags.Ttl, TtlMs = 1 };
        for (int i = 0; i < Keys; i++)
        {
            set.Key = BitConverter.GetBytes(i);
            _state.Apply(set, null);
        }

        // A noisy client's writes wait.
        while (_proposals.Bytes
            <= new LoopOptions
            {
                Self = default,
                Voters = [],
                PreferredLeader = static _ => default,
                Seed = 0,
            }.UncommittedBytesMax / 4)
        {
            _proposals.Add(new byte[60_000]);
        }

        // Sweeps under way do not count against those that new keys need.
        Assert.Equal(512 / ExpirySweep.KeysPerCommand, SweepsOfATick(applied: 0));
        Assert.Equal(2_048 / ExpirySweep.KeysPerCommand, SweepsOfATick(applied: 2_048));
        Assert.Equal(512 / ExpirySweep.KeysPerCommand, SweepsOfATick(applied: 0));
        Assert.Equal(
            (Keys - 512 - 2_048 - 512 + ExpirySweep.KeysPerCommand - 1) / ExpirySweep.KeysPerCommand,
            SweepsOfATick(applied: 10_000));
        Assert.Equal(0, SweepsOfATick(applied: 10_000));
    }

    /// <summary>How many sweeps a tick proposes after so many commands were applied.</summary>
    private int SweepsOfATick(int applied)
    {
        for (int i = 0; i < applied; i++)
        {
            _chores.Applied(CommandKind.Set);
        }

        int before = _proposals.Queued;
        _chores.Tick(now: default, resumed: default, new ClusterTime(1_000), isDraining: false);
        return _proposals.Queued - before;
    }

    /// <summary>
    /// One holder alone has given a lock back that so many want to share: more than one command grants.
    /// </summary>
    private void OpenSessions(int count)
    {
        for (int i = 0; i < count; i++)
        {
            Apply(
                LockCommands.EncodeUnchecked(new Command
                {
                    Kind = CommandKind.Set,
                    Flags = CommandFlags.Session | CommandFlags.Opening,
                    Key = "k"u8,
                    SessionId = (ulong)i + 1,
                    Sequence = 1,
                }));
        }
    }

    private void HoldWithWaiters(int waiters)
    {
        Apply(LockCommands.Acquire("l", "first", leaseMs: 60_000));
        for (int i = 0; i < waiters; i++)
        {
            Apply(LockCommands.Acquire(
                "l",
                "w" + i.ToString(CultureInfo.InvariantCulture),
                leaseMs: 60_000,
                waitMs: 60_000,
                mode: LockMode.Shared));
        }

        Apply(LockCommands.Release("l", "first", 1));
    }

    private void Apply(byte[] bytes)
    {
        Assert.True(Command.TryRead(bytes, out Command command));
        _state.Apply(in command, null);
    }
}
