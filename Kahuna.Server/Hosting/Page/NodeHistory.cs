using System.Text.Json;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting.Page;

/// <summary>
/// The last hour of a node, for the charts: a ring of samples, one each ten seconds, of what happened since the sample
/// before. Its memory is taken once. It goes by the monotonic clock, so that a wall clock that jumps changes nothing;
/// where the process stood still, samples are missing. Owned by the node's page; any thread.
/// </summary>
internal sealed class NodeHistory : IDisposable
{
    /// <summary>Samples that are kept: an hour.</summary>
    public const int Samples = 360;

    /// <summary>The time between two samples.</summary>
    public static readonly TimeSpan Period = TimeSpan.FromSeconds(10);

    /// <summary>Largest answer: a sample has 23 numbers, most of few digits.</summary>
    public const int BytesMax = 256 << 10;

    /// <summary>
    /// When it was taken, what time it covers, the refusals, three numbers of each group, and the gauges.
    /// </summary>
    private const int Columns = FirstGauge + HistoryTotals.Gauges;

    private const int FirstGroup = 3;
    private const int FirstGauge = FirstGroup + (3 * HistoryTotals.Groups);

    private readonly Lock _lock = new();
    private readonly long[] _ring = new long[Samples * Columns];
    private readonly Action<HistoryTotals> _read;
    private readonly TimeProvider _time;
    private readonly ITimer _timer;
    private readonly long _began;
    private HistoryTotals _before = new();
    private HistoryTotals _now = new();
    private long _taken;
    private long _latestMs;

    /// <summary>Begins, with the first sample after ten seconds.</summary>
    /// <param name="read">Reads what the node has counted.</param>
    /// <param name="time">The clock.</param>
    public NodeHistory(Action<HistoryTotals> read, TimeProvider time)
    {
        (_read, _time) = (read, time);
        _began = time.GetTimestamp();
        read(_before);
        // Each sample sets the timer anew, so that a pause is followed by one sample.
        _timer = time.CreateTimer(_ => Sample(), null, Period, Timeout.InfiniteTimeSpan);
    }

    /// <summary>Bytes of the ring.</summary>
    internal static int RingBytes => Samples * Columns * sizeof(long);

    /// <summary>The answer of a node that keeps no history, because it counts nothing.</summary>
    public static byte[] Off { get; } = "{\"metrics\":false}"u8.ToArray();

    /// <inheritdoc/>
    public void Dispose() => _timer.Dispose();

    /// <summary>Renders the samples, the oldest first, with their ages.</summary>
    public byte[] Render()
    {
        using MemoryStream stream = new();
        using (Utf8JsonWriter json = new(stream))
        {
            lock (_lock)
            {
                Write(json);
            }
        }

        return stream.ToArray();
    }

    private void Sample()
    {
        lock (_lock)
        {
            long nowMs = NowMs();
            long elapsedMs = nowMs - _latestMs;
            _read(_now);
            Span<long> sample = Row(_taken);
            sample[0] = nowMs;
            sample[1] = elapsedMs;
            sample[2] = _now.Refused - _before.Refused;
            for (int i = 0; i < HistoryTotals.Groups; i++)
            {
                HistoryGroup group = (HistoryGroup)i;
                Summarize(_before.CountsOf(group), _now.CountsOf(group), sample[(FirstGroup + (3 * i))..]);
            }

            for (int i = 0; i < HistoryTotals.Gauges; i++)
            {
                sample[FirstGauge + i] = _now.GaugeOf((HistoryGauge)i);
            }

            (_before, _now) = (_now, _before);
            _latestMs = nowMs;
            _taken++;
        }

        _timer.Change(Period, Timeout.InfiniteTimeSpan);
    }

    private static void Summarize(ReadOnlySpan<long> before, ReadOnlySpan<long> now, Span<long> target)
    {
        Span<long> added = stackalloc long[DurationHistogram.Bounds + 1];
        long count = 0;
        for (int i = 0; i < added.Length; i++)
        {
            added[i] = now[i] - before[i];
            count += added[i];
        }

        target[0] = count;
        target[1] = PercentileUs(added, count, 50);
        target[2] = PercentileUs(added, count, 99);
    }

    /// <summary>
    /// A percentile of durations that were counted by place, in microseconds: within a place they are taken to be
    /// spread evenly, and those above the last bound to be as long as it. -1: there were none.
    /// </summary>
    internal static long PercentileUs(ReadOnlySpan<long> counts, long total, int percent)
    {
        if (total == 0)
        {
            return -1;
        }

        double wanted = total * percent / 100.0;
        long below = 0;
        for (int place = 0; place < DurationHistogram.Bounds; place++)
        {
            if (below + counts[place] >= wanted)
            {
                long from = place == 0 ? 0 : DurationHistogram.BoundUs(place - 1);
                return from + (long)((DurationHistogram.BoundUs(place) - from) * (wanted - below) / counts[place]);
            }

            below += counts[place];
        }

        return DurationHistogram.BoundUs(DurationHistogram.Bounds - 1);
    }

    private void Write(Utf8JsonWriter json)
    {
        long nowMs = NowMs();
        json.WriteStartObject();
        json.WriteBoolean("metrics", true);
        json.WriteNumber("periodMs", (long)Period.TotalMilliseconds);
        json.WriteNumber("runningMs", nowMs);
        WriteColumn(json, "agesMs", static (sample, now) => now - sample[0], nowMs);
        WriteColumn(json, "coversMs", static (sample, _) => sample[1]);
        WriteColumn(json, "refused", static (sample, _) => sample[2]);
        json.WriteStartObject("groups");
        for (int i = 0; i < HistoryTotals.Groups; i++)
        {
            json.WriteStartObject(Name(((HistoryGroup)i).ToString()));
            WriteColumn(json, "count", static (sample, at) => sample[(int)at], FirstGroup + (3 * i));
            WriteColumn(json, "p50Us", static (sample, at) => sample[(int)at], FirstGroup + (3 * i) + 1);
            WriteColumn(json, "p99Us", static (sample, at) => sample[(int)at], FirstGroup + (3 * i) + 2);
            json.WriteEndObject();
        }

        json.WriteEndObject();
        json.WriteStartObject("gauges");
        for (int i = 0; i < HistoryTotals.Gauges; i++)
        {
            WriteColumn(
                json, Name(((HistoryGauge)i).ToString()), static (sample, at) => sample[(int)at], FirstGauge + i);
        }

        json.WriteEndObject();
        json.WriteEndObject();
    }

    private void WriteColumn(
        Utf8JsonWriter json, string name, Func<ReadOnlySpan<long>, long, long> read, long argument = 0)
    {
        json.WriteStartArray(name);
        for (long at = Math.Max(0, _taken - Samples); at < _taken; at++)
        {
            json.WriteNumberValue(read(Row(at), argument));
        }

        json.WriteEndArray();
    }

    private Span<long> Row(long at) => _ring.AsSpan((int)(at % Samples) * Columns, Columns);

    private long NowMs() => (long)_time.GetElapsedTime(_began).TotalMilliseconds;

    private static string Name(string name) => char.ToLowerInvariant(name[0]) + name[1..];
}
