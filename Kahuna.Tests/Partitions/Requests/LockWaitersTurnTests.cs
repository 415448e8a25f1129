using System.Globalization;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.State.Locks;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Partitions.Requests;

/// <summary>
/// However many answers are held back, one turn gives its share of them and leaves the others to the next.
/// </summary>
public sealed class LockWaitersTurnTests
{
    private const int ReadsPerTurn = 1024;

    private readonly ModelCluster _cluster = new(1);
    private readonly StateMachine _state = new(new StateLimits());
    private readonly ModelSink _sink = new();
    private readonly TurnClock _clock = new(pauseMs: 10_000, now: default);
    private readonly LockWaiters _desk;

    public LockWaitersTurnTests()
    {
        LoopOptions options =
            new() { Self = _cluster.Ids[0], Voters = _cluster.Ids, PreferredLeader = _ => _cluster.Ids[0], Seed = 1 };
        ReplyFrames replies = new(_cluster[1].Loops!.Loops[0], trace: null);
        _desk = new LockWaiters(options, _clock, replies, new AppliedState(_state), new ParkedReads(replies));
    }

    [Fact]
    public void A_change_is_told_to_so_many_observers_in_one_turn_and_to_the_others_in_the_next()
    {
        const int Observers = (2 * ReadsPerTurn) + 100;
        Observe("l", Observers);
        Apply(LockCommands.Acquire("l", "ann", leaseMs: 60_000));
        foreach (int left in new[] { Observers - ReadsPerTurn, Observers - (2 * ReadsPerTurn), 0 })
        {
            _desk.ServeChanges(_state.Time);
            Assert.Equal((left, left > 0), (_desk.Held, _desk.IsDue));
        }

        Assert.Equal(0, _sink.HeldBack);
    }

    [Fact]
    public void A_lock_that_changes_back_and_forth_is_looked_at_once_for_all_changes()
    {
        Observe("l", ReadsPerTurn);
        for (int i = 0; i < 5_000; i++)
        {
            Apply(LockCommands.Release("l", "ann", Apply(LockCommands.Acquire("l", "ann", leaseMs: 60_000))));
        }

        // It is free as before: there is nothing to say, and one turn is enough to find that out.
        _desk.ServeChanges(_state.Time);
        Assert.Equal((ReadsPerTurn, false), (_desk.Held, _desk.IsDue));
        Apply(LockCommands.Acquire("l", "ann", leaseMs: 60_000));
        _desk.ServeChanges(_state.Time);
        Assert.Equal((0, false), (_desk.Held, _desk.IsDue));
    }

    [Fact]
    public void Answers_that_fall_due_together_go_in_several_turns()
    {
        const int Observers = (2 * ReadsPerTurn) + 10;
        Observe("l", Observers, holdMs: 100);
        _clock.BeginTurn(_clock.Now + 100);
        _desk.Tick(_state.Time);
        Assert.Equal((Observers - ReadsPerTurn, true), (_desk.Held, _desk.IsDue));
        _desk.ServeChanges(_state.Time);
        Assert.Equal((10, true), (_desk.Held, _desk.IsDue));
        _desk.ServeChanges(_state.Time);
        Assert.Equal((0, false), (_desk.Held, _desk.IsDue));
    }

    [Fact]
    public void Large_pictures_end_a_turn_earlier()
    {
        for (int i = 0; i < 256; i++)
        {
            Apply(LockCommands.Acquire(
                "l",
                "owner " + i.ToString(CultureInfo.InvariantCulture),
                leaseMs: 60_000,
                mode: LockMode.Shared,
                note: new string('n', 1024)));
        }

        Observe("l", 50, token: 1);
        Apply(LockCommands.Release("l", "owner 0", 1));
        _desk.ServeChanges(_state.Time);
        Assert.InRange(_desk.Held, 40, 49);
        Assert.True(_desk.IsDue);
    }

    [Fact]
    public void Reads_that_find_no_room_are_answered_at_once()
    {
        const int Streams = 40;
        const int Observers = 1_000;
        RequestBudget connection = new(1 << 20);
        RequestBudget node = new(16 << 20);
        HoldingSink[] streams =
            [.. Enumerable.Range(0, Streams).Select(_ => new HoldingSink(new RequestReservation(connection, node)))];
        foreach (HoldingSink stream in streams)
        {
            for (uint i = 0; i < Observers; i++)
            {
                _desk.Serve(stream, i, LockCommands.Observe("l", 0, holdMs: 30_000), _state.Time);
            }
        }

        // A share of the node's room, and as much for each stream as is never refused.
        Assert.InRange(
            connection.Used, node.BytesMax / 20, (node.BytesMax / 16) + (Streams * RequestBudget.SmallBytes));
        Assert.Equal(connection.Used, node.Used);
        Assert.InRange(_desk.Held, 3_000, (Streams * Observers) - 10_000);
        Assert.All(streams, static stream => Assert.InRange(stream.HeldBack, 100, Observers));

        Apply(LockCommands.Acquire("l", "ann", leaseMs: 60_000));
        do
        {
            _desk.ServeChanges(_state.Time);
        }
        while (_desk.IsDue);
        Assert.Equal((0, 0, 0), (_desk.Held, connection.Used, node.Used));
    }

    [Fact]
    public void Streams_that_are_gone_get_no_answers_and_cost_none()
    {
        Observe("l", 100);
        _sink.IsGone = true;
        Apply(LockCommands.Acquire("l", "ann", leaseMs: 60_000));
        _desk.ServeChanges(_state.Time);
        Assert.Equal((0, 0), (_desk.Held, _sink.HeldBack));
    }

    [Fact]
    public void Answered_reads_and_granted_claims_are_not_remembered()
    {
        Apply(LockCommands.Acquire("held", "ann", leaseMs: 60_000));
        for (int i = 0; i < 2_000; i++)
        {
            // Each waits, asks how its claim stands, is let in, and gives the lock back; and one observer sees that.
            string owner = "owner " + i.ToString(CultureInfo.InvariantCulture);
            long before = _state.Locks.CurrentToken("held"u8).Value;
            Apply(LockCommands.Acquire("held", owner, leaseMs: 60_000, waitMs: 60_000));
            _desk.Serve(_sink, 1, LockCommands.Await("held", owner, before + 1), _state.Time);
            _desk.Serve(_sink, 2, LockCommands.Observe("held", before, holdMs: 30_000), _state.Time);
            Apply(LockCommands.Release(
                "held", i == 0 ? "ann" : "owner " + (i - 1).ToString(CultureInfo.InvariantCulture), before));
            _desk.ServeChanges(_state.Time);
        }

        Assert.Equal(0, _desk.Held);
        Assert.InRange(_desk.Remembered, 0, 1_100);
    }

    private void Observe(string name, int count, long token = 0, long holdMs = 30_000)
    {
        for (int i = 0; i < count; i++)
        {
            _desk.Serve(_sink, (uint)i, LockCommands.Observe(name, token, holdMs), _state.Time);
        }

        Assert.Equal(count, _desk.Held);
    }

    /// <summary>The latest token afterwards.</summary>
    private long Apply(byte[] bytes)
    {
        Assert.True(Command.TryRead(bytes, out Command command));
        _state.Apply(in command, null);
        return _state.Locks.CurrentToken(command.Key).Value;
    }
}
