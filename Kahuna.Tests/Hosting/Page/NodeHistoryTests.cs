using System.Text.Json.Nodes;
using Kahuna.Server.Hosting.Page;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Client;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>The samples of the last hour: what is in one, pauses, and that they stay as many and as large.</summary>
public sealed class NodeHistoryTests : IDisposable
{
    private readonly ManualTime _time = new();
    private readonly DurationHistogram _writes = new();
    private readonly NodeHistory _history;
    private long _refused;
    private long _log = 7;

    public NodeHistoryTests() => _history = new NodeHistory(Read, _time);

    public void Dispose() => _history.Dispose();

    [Fact]
    public void A_sample_has_what_came_since_the_one_before()
    {
        Add(count: 98, us: 100);
        Add(count: 2, us: 40_000);
        _refused = 3;
        _time.Advance(NodeHistory.Period);
        _log = 9;
        Add(count: 10, us: 1);
        _time.Advance(NodeHistory.Period);

        JsonNode told = Tell();
        Assert.Equal([10_000, 0], Numbers(told["agesMs"]));
        Assert.Equal([10_000, 10_000], Numbers(told["coversMs"]));
        Assert.Equal([3, 0], Numbers(told["refused"]));
        JsonNode writes = told["groups"]!["persistentWrites"]!;
        Assert.Equal([100, 10], Numbers(writes["count"]));
        long[] median = Numbers(writes["p50Us"]);
        Assert.InRange(median[0], 64, 128);
        Assert.InRange(median[1], 0, 64);
        Assert.InRange(Numbers(writes["p99Us"])[0], 32_768, 65_536);
        Assert.Equal([-1, -1], Numbers(told["groups"]!["reads"]!["p99Us"]));
        Assert.Equal([7, 9], Numbers(told["gauges"]!["logBytes"]));
        Assert.Equal(20_000, (long)told["runningMs"]!);
    }

    [Fact]
    public void A_pause_leaves_samples_out_and_the_next_one_says_what_time_it_covers()
    {
        _time.Advance(NodeHistory.Period);
        _time.Jump(TimeSpan.FromMinutes(5));
        Add(count: 600, us: 100);
        _time.Advance(TimeSpan.FromMilliseconds(5));
        _time.Advance(TimeSpan.FromMilliseconds(5));
        _time.Advance(NodeHistory.Period);

        JsonNode told = Tell();
        long[] covers = Numbers(told["coversMs"]);
        Assert.Equal(3, covers.Length);
        Assert.InRange(covers[1], 300_000, 311_000);
        Assert.Equal(600, Numbers(told["groups"]!["persistentWrites"]!["count"]).Sum());
    }

    [Fact]
    public void A_day_takes_no_more_room_than_an_hour()
    {
        for (int i = 0; i < 24 * NodeHistory.Samples; i++)
        {
            Add(count: 1_000_000, us: 1L << (i % 30));
            _log = long.MaxValue / 4;
            _time.Jump(NodeHistory.Period);
            _time.Advance(TimeSpan.FromMilliseconds(5));
        }

        JsonNode told = Tell();
        Assert.Equal(NodeHistory.Samples, told["agesMs"]!.AsArray().Count);
        Assert.Equal(NodeHistory.Samples, told["gauges"]!["logBytes"]!.AsArray().Count);
        Assert.InRange(_history.Render().Length, 1, NodeHistory.BytesMax);
        Assert.InRange(NodeHistory.RingBytes, 1, 100_000);
        Assert.True(Numbers(told["agesMs"])[0] <= 3_605_000);
    }

    [Theory]
    [InlineData(0, -1)]
    [InlineData(1, 32)]
    public void A_percentile_lies_within_its_place(long count, long expected)
    {
        long[] counts = new long[DurationHistogram.Bounds + 1];
        counts[0] = count;
        Assert.Equal(expected, NodeHistory.PercentileUs(counts, count, 50));
    }

    [Fact]
    public void What_is_longer_than_the_last_bound_counts_as_long_as_it()
    {
        long[] counts = new long[DurationHistogram.Bounds + 1];
        counts[^1] = 5;
        Assert.Equal(
            DurationHistogram.BoundUs(DurationHistogram.Bounds - 1), NodeHistory.PercentileUs(counts, 5, 99));
    }

    [Theory]
    [InlineData(CommandKind.Set, Durability.Persistent, "PersistentWrites")]
    [InlineData(CommandKind.Set, Durability.Ephemeral, "EphemeralWrites")]
    [InlineData(CommandKind.SequenceNext, Durability.Persistent, "PersistentWrites")]
    [InlineData(CommandKind.Get, Durability.Ephemeral, "Reads")]
    [InlineData(CommandKind.LockAcquire, Durability.Persistent, "Locks")]
    [InlineData(CommandKind.LockGet, Durability.Persistent, "Locks")]
    [InlineData(CommandKind.LockAwait, Durability.Persistent, null)]
    [InlineData(CommandKind.LockObserve, Durability.Ephemeral, null)]
    public void Long_polls_are_in_no_group(object kind, object durability, string? expected) =>
        Assert.Equal(expected, HistoryTotals.GroupOf((CommandKind)kind, (Durability)durability)?.ToString());

    private void Add(int count, long us)
    {
        for (int i = 0; i < Math.Min(count, 1_000); i++)
        {
            _writes.Add(us);
        }
    }

    private void Read(HistoryTotals totals)
    {
        totals.Clear();
        long ignored = 0;
        _writes.AddTo(totals.CountsOf(HistoryGroup.PersistentWrites), ref ignored);
        totals.Refused = _refused;
        totals.GaugeOf(HistoryGauge.LogBytes) = _log;
    }

    private JsonNode Tell() => JsonNode.Parse(_history.Render())!;

    private static long[] Numbers(JsonNode? column) => [.. column!.AsArray().Select(static number => (long)number!)];
}
