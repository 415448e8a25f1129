namespace Kahuna.Benchmark.Recording;

/// <summary>
/// The counters of one worker and one operation: 32 bits wide and only as many as the latencies need, because a
/// thousand workers have a set each. Written by its worker alone; others may read <see cref="Counts"/> at any time and
/// see counts that only grow.
/// </summary>
internal sealed class LatencyCounts
{
    private uint[] _counts = [];
    private LatencyHistogram? _folded;

    /// <summary>Largest recorded value in microseconds.</summary>
    public long Max { get; private set; }

    /// <summary>The counters since the last fold; for the live line, which tolerates a fold.</summary>
    public ReadOnlySpan<uint> Counts => Volatile.Read(ref _counts);

    public void Record(long microseconds)
    {
        microseconds = Math.Min(microseconds, LatencyHistogram.HourMicroseconds);
        int index = BucketLayout.IndexOf(microseconds);
        uint[] counts = _counts;
        if ((uint)index >= (uint)counts.Length)
        {
            counts = Grow(index);
        }

        if (microseconds > Max)
        {
            Max = microseconds;
        }

        if (++counts[index] == uint.MaxValue)
        {
            Fold();
        }
    }

    /// <summary>Adds everything recorded to <paramref name="total"/>.</summary>
    public void AddTo(LatencyHistogram total)
    {
        if (_folded is not null)
        {
            total.Add(_folded);
        }

        total.AddCounts(_counts, Max);
    }

    private uint[] Grow(int index)
    {
        uint[] grown = new uint[BucketLayout.CountersFor(index)];
        _counts.CopyTo(grown, 0);
        Volatile.Write(ref _counts, grown);
        return grown;
    }

    /// <summary>Moves the counts into 64-bit counters before one of them wraps.</summary>
    private void Fold()
    {
        _folded ??= new LatencyHistogram();
        _folded.AddCounts(_counts, Max);
        Array.Clear(_counts);
    }
}
