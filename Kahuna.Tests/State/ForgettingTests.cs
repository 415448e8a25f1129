using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State;

/// <summary>
/// Deleted and expired keys are forgotten with the last of their history, and their revisions do not come again.
/// </summary>
public sealed class ForgettingTests
{
    private const int SweepKeys = 512;

    [Fact]
    public void A_deleted_key_is_forgotten_when_its_history_has_passed()
    {
        StateLimits limits = new();
        StateDriver state = new(limits);
        state.Set("other", "x");
        for (int i = 0; i < 5; i++)
        {
            state.Set("key", $"{i}");
        }

        state.Delete("key");
        state.Now += limits.HistoryAgeMs;
        Assert.Equal(0, state.Machine.CountDue(new ClusterTime(state.Now), 10));
        state.Sweep(SweepKeys);
        Assert.Equal((6L, "4"), (state.Get("key").Revision, state.Get("key", 5).Value));

        state.Now++;
        Assert.Equal(1, state.Machine.CountDue(new ClusterTime(state.Now), 10));
        state.Sweep(SweepKeys);
        Assert.Equal(0, state.Machine.CountDue(new ClusterTime(state.Now), 10));
        Assert.Equal(
            (1L, 0L, 0L), (state.Machine.Counts.Keys, state.Machine.Counts.Tombstones, state.Machine.Counts.History));
        Assert.Equal((OutcomeStatus.NotFound, 0L), (state.Get("key").Status, state.Get("key").Revision));
        Assert.Equal(OutcomeStatus.NotFound, state.Get("key", 5).Status);

        // Neither the key nor any other begins at or below a revision that was forgotten; keys that are there go on as
        // they did.
        Assert.Equal(7, state.Set("key", "again").Revision);
        Assert.Equal(8, state.Set("key", "again").Revision);
        Assert.Equal(7, state.Increment("new", 1).Revision);
        Assert.Equal(2, state.Set("other", "y").Revision);
        Assert.Equal(OutcomeStatus.RevisionCompacted, state.Get("key", 5).Status);
        Assert.Equal(state.Machine.RecomputeDigest(), state.Machine.Digest);
    }

    [Fact]
    public void What_leaves_no_history_is_forgotten_with_the_next_commands()
    {
        StateDriver state = new();
        for (int i = 0; i < 100; i++)
        {
            state.Set($"key/{i}", "x");
            Assert.Equal(OutcomeStatus.Applied, state.Delete($"key/{i}", CommandFlags.WithoutHistory).Status);
            Assert.InRange(state.Machine.Counts.Tombstones, 0, 1);
        }
    }

    [Fact]
    public void A_key_that_is_written_again_in_time_goes_on()
    {
        StateDriver state = new();
        state.Set("key", "x");
        state.Delete("key", CommandFlags.WithoutHistory);
        state.Now++;

        // The command that would forget it is the one that follows.
        Assert.Equal(OutcomeStatus.Applied, state.Set("other", "x").Status);
        Assert.Equal(3, state.Set("key", "y").Revision);
        state.Now += new StateLimits().HistoryAgeMs + 1;
        state.Sweep(SweepKeys);
        Assert.Equal("y", state.Get("key").Value);
    }

    [Fact]
    public void A_loaded_state_forgets_the_same_keys_in_the_same_order()
    {
        StateLimits limits = new() { HistoryBytes = 20_000 };
        StateDriver state = new(limits);
        for (int i = 0; i < 50; i++)
        {
            state.Set($"key/{i}", "x");
        }

        for (int i = 49; i >= 0; i--)
        {
            state.Delete($"key/{i}");
        }

        // One large value takes the place of many small ones: more keys wait than one command forgets.
        state.Set("large", new string('x', 19_000));
        state.Set("large", "x");
        Assert.InRange(state.Machine.CountDue(new ClusterTime(state.Now), 100), 20, 50);
        using StateView view = state.Machine.ViewAll();
        StateLoader loader = new(limits, view.Summary);
        foreach (byte[] record in StateRecords.TakeAll(view))
        {
            loader.Add(record);
        }

        StateDriver loaded = new(machine: loader.Finish()) { Now = state.Now };
        for (int i = 0; i < 10; i++)
        {
            Assert.Equal(state.Set($"new/{i}", "z"), loaded.Set($"new/{i}", "z"));
            Assert.Equal(state.Machine.Digest, loaded.Machine.Digest);
        }

        Assert.Equal(0, state.Machine.CountDue(new ClusterTime(state.Now), 100));
        Assert.InRange(state.Machine.Counts.Tombstones, 0, 30);
    }

    [Fact]
    public void An_hour_of_new_names_that_live_for_a_minute_stays_within_a_bound()
    {
        const int PerSecond = 200;
        const int Lifetime = 60;
        StateLimits limits = new() { HistoryBytes = 1 << 20 };
        StateMachine machine = new(limits);
        Command set = new() { Kind = CommandKind.Set, Flags = CommandFlags.Ttl, TtlMs = Lifetime * 1_000 };
        Command sweep = new() { Kind = CommandKind.ExpireSweep, Flags = CommandFlags.Number, Number = SweepKeys };
        byte[] name = new byte[16];
        byte[] value = new byte[32];
        long rowsMax = 0;
        long bytesAfterTenMinutes = 0;
        for (int second = 0; second < 3_600; second++)
        {
            machine.BeginEntry(default, new ClusterTime(second * 1_000L));
            for (int i = 0; i < PerSecond; i++)
            {
                Assert.True(((second * PerSecond) + i).TryFormat(name, out int _, "D16"));
                set.Key = name;
                set.Value = value;
                machine.Apply(set, null);
            }

            while (machine.CountDue(machine.Time, SweepKeys) > 0)
            {
                machine.Apply(sweep, null);
            }

            rowsMax = Math.Max(rowsMax, machine.Counts.Keys + machine.Counts.Tombstones);
            bytesAfterTenMinutes = second == 600 ? machine.Counts.Bytes : bytesAfterTenMinutes;
        }

        // Those that live, and those that the history has a value of.
        long remembered = limits.HistoryBytes / (HistoryTable.RecordOverheadBytes + 16 + 32);
        Assert.InRange(rowsMax, Lifetime * PerSecond, ((Lifetime + 2) * PerSecond) + remembered);
        Assert.InRange(machine.Counts.Bytes, 0, bytesAfterTenMinutes * 11 / 10);
    }
}
