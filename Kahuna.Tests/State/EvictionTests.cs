using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State;

/// <summary>Which keys go when there is no room, and what is left of them.</summary>
public sealed class EvictionTests
{
    [Fact]
    public void The_hand_spares_what_was_used_since_it_came_by()
    {
        EvictionQueue queue = new();
        for (int row = 1; row <= 5; row++)
        {
            queue.Add(new Row(row));
        }

        queue.Touch(new Row(1));
        queue.Touch(new Row(3));
        Assert.Equal(2, Take(queue));
        Assert.Equal(4, Take(queue));
        queue.Add(new Row(6));
        queue.Touch(new Row(5));
        Assert.Equal(6, Take(queue));

        // From the beginning again: 1 and 3 were not used since.
        Assert.Equal(1, Take(queue));
        Assert.Equal(3, Take(queue));
        Assert.Equal(5, Take(queue));
        Assert.Equal(0, queue.Next().Value);
        Assert.Equal(0, queue.Count);
        queue.Add(new Row(2));
        Assert.Equal(2, Take(queue));
    }

    [Fact]
    public void Keys_in_use_outlive_a_scan_of_many_others()
    {
        StateDriver state = new();
        state.Machine.TrackUses();
        Random random = new(3);
        for (int i = 0; i < 200; i++)
        {
            state.Set($"hot/{i}", "x");
        }

        int lost = 0;
        for (int i = 0; i < 20_000; i++)
        {
            state.Set($"scan/{i}", "x");
            string hot = $"hot/{random.Next(200)}";
            if (state.Get(hot).Status == OutcomeStatus.NotFound)
            {
                lost++;
                state.Set(hot, "x");
            }

            if (state.Machine.Counts.Keys > 1_000)
            {
                Evict(state, 4_000);
            }
        }

        Assert.InRange(lost, 0, 200);
        Assert.Equal(state.Machine.RecomputeDigest(), state.Machine.Digest);
    }

    [Fact]
    public void What_was_evicted_was_never_there_but_its_revisions_do_not_come_again()
    {
        StateDriver state = new();
        state.Machine.TrackUses();
        for (int i = 0; i < 10; i++)
        {
            state.Set("a", $"{i}", ttlMs: 1_000);
        }

        state.Set("b", "x");
        state.Delete("b");
        Evict(state, long.MaxValue);
        Assert.Equal((OutcomeStatus.NotFound, 0L), (state.Get("a").Status, state.Get("a").Revision));
        Assert.Equal(OutcomeStatus.NotFound, state.Get("a", 3).Status);
        Assert.Equal(
            (0L, 0L, 0L), (state.Machine.Counts.Keys, state.Machine.Counts.Tombstones, state.Machine.Counts.History));
        Assert.Equal(state.Machine.RecomputeDigest(), state.Machine.Digest);
        Assert.False(state.Machine.HasExpired(new ClusterTime(long.MaxValue)));

        using StateView view = state.Machine.ViewAll();
        StateLoader loader = new(new StateLimits(), view.Summary);
        foreach (byte[] record in StateRecords.TakeAll(view))
        {
            loader.Add(record);
        }

        StateDriver loaded = new(machine: loader.Finish()) { Now = state.Now };
        foreach (StateDriver driver in new[] { state, loaded })
        {
            Assert.Equal(11, driver.Set("a", "again").Revision);
            Assert.Equal(12, driver.Set("a", "again").Revision);
            Assert.Equal(11, driver.Increment("b", 1).Revision);
        }
    }

    [Fact]
    public void Memory_is_used_again()
    {
        StateDriver state = new();
        state.Machine.TrackUses();
        for (int i = 0; i < 5_000; i++)
        {
            state.Set($"first/{i}", new string('x', 500));
        }

        long before = state.Machine.BytesInUse;
        for (int i = 0; i < 50_000; i++)
        {
            if (state.Machine.FreeBytes < 100_000)
            {
                Evict(state, 300_000);
            }

            state.Set($"then/{i}", new string('x', 500));
        }

        Assert.InRange(state.Machine.BytesInUse, before / 2, before + 2_500_000);
    }

    private static int Take(EvictionQueue queue)
    {
        int row = queue.Next().Value;
        queue.Remove(new Row(row));
        return row;
    }

    private static void Evict(StateDriver state, long bytes)
    {
        ByteBuffer names = ByteBuffer.Rent();
        while (bytes > 0 && state.Machine.TryChooseVictims(names, 10_000, ref bytes))
        {
            state.Machine.BeginEntry(default, new ClusterTime(state.Now));
            state.Machine.Apply(
                new Command
                {
                    Kind = CommandKind.Evict,
                    Durability = Durability.Ephemeral,
                    Value = names.Written,
                },
                null);
            names.Length = 0;
        }

        names.Return();
    }
}
