using System.Globalization;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State;

/// <summary>Reads at a revision, and the bounds of what is kept for them.</summary>
public sealed class HistoryTests
{
    [Fact]
    public void Replaced_revisions_are_readable_and_deletions_are_remembered()
    {
        StateDriver state = new();
        state.Set("k", "a", ttlMs: 50);
        state.Set("k", "b");
        state.Delete("k");
        state.Set("k", "c");
        Assert.Equal(Found(1, "a"), state.Get("k", 1));
        Assert.Equal(Found(2, "b"), state.Get("k", 2));
        Assert.Equal(new Answer(OutcomeStatus.NotFound, 3, 0, null, false), state.Get("k", 3));
        Assert.Equal(Found(4, "c"), state.Get("k", 4));
        Assert.Equal(new Answer(OutcomeStatus.NotFound, 4, 0, null, false), state.Get("k", 5));
        Assert.Equal(new Answer(OutcomeStatus.NotFound, 4, 0, null, false), state.Get("k", long.MaxValue));
        Assert.Equal(new StateCounts(1, 0, 3, 0), state.Machine.Counts with { Bytes = 0 });
    }

    [Fact]
    public void The_oldest_revisions_of_a_key_go_first()
    {
        StateDriver state = new(new StateLimits { HistoryPerKey = 3 });
        for (int i = 1; i <= 10; i++)
        {
            state.Set("k", i.ToString(CultureInfo.InvariantCulture));
        }

        for (int i = 1; i <= 10; i++)
        {
            Assert.Equal(
                i < 7
                    ? new Answer(OutcomeStatus.RevisionCompacted, 10, 0, null, false)
                    : Found(i, i.ToString(CultureInfo.InvariantCulture)),
                state.Get("k", i));
        }
    }

    [Fact]
    public void Without_history_the_replaced_revision_is_not_kept()
    {
        StateDriver state = new();
        state.Set("k", "a");
        state.Set("k", "b");
        state.Set("k", "c", CommandFlags.WithoutHistory);
        state.Set("k", "d");
        Assert.Equal(Found(1, "a"), state.Get("k", 1));
        Assert.Equal(OutcomeStatus.RevisionCompacted, state.Get("k", 2).Status);
        Assert.Equal(Found(3, "c"), state.Get("k", 3));
        state.Delete("k", CommandFlags.WithoutHistory);
        Assert.Equal(OutcomeStatus.RevisionCompacted, state.Get("k", 4).Status);
        Assert.Equal(OutcomeStatus.NotFound, state.Get("k", 5).Status);
    }

    [Fact]
    public void History_can_be_switched_off()
    {
        StateDriver state = new(new StateLimits { HistoryPerKey = 0 });
        state.Set("k", "a", ttlMs: 10);
        state.Set("k", "b", ttlMs: 10);
        Assert.Equal(OutcomeStatus.RevisionCompacted, state.Get("k", 1).Status);
        state.Now += 10;
        Assert.Equal(OutcomeStatus.RevisionCompacted, state.Get("k", 2).Status);
        Assert.Equal(0, state.Machine.Counts.History);
    }

    [Fact]
    public void Old_revisions_age_a_few_with_each_command()
    {
        StateDriver state = new(new StateLimits { HistoryAgeMs = 1000 });
        for (int i = 0; i < 10; i++)
        {
            state.Set($"k{i}", "a");
            state.Set($"k{i}", "b");
        }

        state.Now += 1000;
        state.Set("x", "1");
        Assert.Equal(10, state.Machine.Counts.History);
        state.Now += 1;
        state.Set("y", "1");
        Assert.Equal(6, state.Machine.Counts.History);
        Assert.Equal(OutcomeStatus.RevisionCompacted, state.Get("k0", 1).Status);
        Assert.Equal(Found(1, "a"), state.Get("k4", 1));
        state.Sweep(1);
        state.Sweep(1);
        Assert.Equal(0, state.Machine.Counts.History);
    }

    [Fact]
    public void The_oldest_of_all_keys_go_when_the_bytes_run_out()
    {
        int cost = HistoryTable.RecordOverheadBytes + 2 + 100;
        StateDriver state = new(new StateLimits { HistoryBytes = 3 * cost });
        string value = new('v', 100);
        for (int i = 0; i < 5; i++)
        {
            state.Set($"k{i}", value);
            state.Set($"k{i}", value);
        }

        Assert.Equal(3, state.Machine.Counts.History);
        for (int i = 0; i < 5; i++)
        {
            Assert.Equal(i < 2 ? OutcomeStatus.RevisionCompacted : OutcomeStatus.Found, state.Get($"k{i}", 1).Status);
        }
    }

    [Fact]
    public void A_large_revision_takes_the_room_of_small_ones_in_slices()
    {
        const int Keys = 1_000;
        const int Large = 8_000;
        long cost = HistoryTable.RecordOverheadBytes + "k0000".Length + 1;
        long bytesMax = Keys * cost;
        StateDriver state = new(new StateLimits { HistoryBytes = bytesMax });
        for (int i = 0; i < 2 * Keys; i++)
        {
            state.Set($"k{i % Keys:0000}", "v");
        }

        for (int i = 1; i <= 8; i++)
        {
            state.Set($"large-{i}", new string('v', Large));
        }

        // Each command drops so many and no more; what is over the limit stays for the next ones.
        Assert.Equal(Keys, state.Machine.Counts.History);
        for (int i = 1; i <= 7; i++)
        {
            state.Delete($"large-{i}");
            Assert.Equal(Keys + (i * (1 - HistoryTable.DroppedPerCommand)), state.Machine.Counts.History);
            Assert.InRange(Bytes(i), bytesMax + 1, (bytesMax * 5 / 4) + (2 * Large));
        }

        // No further one is kept while there is a quarter too much.
        Assert.Equal(Found(1, new string('v', Large)), state.Get("large-7", 1));
        state.Delete("large-8");
        Assert.Equal(OutcomeStatus.RevisionCompacted, state.Get("large-8", 1).Status);
        for (int i = 0; i < 5; i++)
        {
            state.Set("other", "v", CommandFlags.WithoutHistory);
        }

        Assert.InRange(Bytes(7), bytesMax - cost, bytesMax);
        Assert.Equal(state.Machine.RecomputeDigest(), state.Machine.Digest);

        long Bytes(int large) =>
            ((state.Machine.Counts.History - large) * cost)
                + (large * (HistoryTable.RecordOverheadBytes + "large-1".Length + Large));
    }

    [Fact]
    public void A_value_larger_than_the_whole_history_is_not_kept_and_pushes_nothing_out()
    {
        StateDriver state = new(new StateLimits { HistoryBytes = 1000 });
        state.Set("small", "a");
        state.Set("small", "b");
        state.Set("large", new string('v', 1000));
        state.Set("large", "b");
        Assert.Equal(OutcomeStatus.RevisionCompacted, state.Get("large", 1).Status);
        Assert.Equal(Found(1, "a"), state.Get("small", 1));
    }

    private static Answer Found(long revision, string value) => new(OutcomeStatus.Found, revision, -1, value, false);
}
