namespace Kahuna.Benchmark.Recording;

/// <summary>
/// Histogram with a constant relative precision (G. Tene, HdrHistogram). Grows with the values that it is given. Owned by one thread at a time.
/// </summary>
internal sealed class HdrHistogram
{
    /// <summary>One hour in microseconds: the range that an encoded histogram states at least, so that other readers size their tables for it.</summary>
    public const long HourMicroseconds = 3_600_000_000;

    private readonly BucketLayout _layout;
    private long[] _counts;
    private long _minNonZero = long.MaxValue;

    public HdrHistogram()
        : this(BucketLayout.Microseconds, HourMicroseconds)
    {
    }

    public HdrHistogram(BucketLayout layout, long highestTrackable)
    {
        _layout = layout;
        HighestTrackable = highestTrackable;
        _counts = [];
    }

    public BucketLayout Layout => _layout;

    /// <summary>Range stated in the encoding; raised when a larger value is recorded.</summary>
    public long HighestTrackable { get; private set; }

    public long TotalCount { get; private set; }

    /// <summary>Largest recorded value, exactly; 0 when empty.</summary>
    public long Max { get; private set; }

    /// <summary>Smallest recorded value; 0 when empty.</summary>
    public long Min => TotalCount == 0 || (_counts.Length > 0 && _counts[0] > 0) ? 0 : _minNonZero;

    /// <summary>Number of counters in use: all above are zero.</summary>
    public int CounterCount => TotalCount == 0 ? 0 : _layout.IndexOf(Max) + 1;

    public long CountAt(int index) => index < _counts.Length ? _counts[index] : 0;

    /// <summary>Counts <paramref name="value"/> <paramref name="times"/> times; a negative value counts as 0.</summary>
    public void Record(long value, long times = 1)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(times);
        if (times == 0)
        {
            return;
        }

        value = Math.Max(value, 0);
        AddAt(_layout.IndexOf(value), times);
        Absorb(value, value);
    }

    /// <summary>Adds the counts of <paramref name="other"/>, which must have the same layout.</summary>
    public void Add(HdrHistogram other)
    {
        RequireSameLayout(other._layout);
        for (int i = 0; i < other._counts.Length; i++)
        {
            if (other._counts[i] != 0)
            {
                AddAt(i, other._counts[i]);
            }
        }

        Absorb(other.TotalCount == 0 ? 0 : other._minNonZero, other.Max);
    }

    /// <summary>Adds raw counters of the same layout together with the exact largest value that they count.</summary>
    public void AddCounts(ReadOnlySpan<uint> counts, long max)
    {
        long lowest = 0;
        for (int i = 0; i < counts.Length; i++)
        {
            if (counts[i] == 0)
            {
                continue;
            }

            AddAt(i, counts[i]);
            if (lowest == 0)
            {
                lowest = _layout.LowestAt(i);
            }
        }

        Absorb(lowest, max);
    }

    /// <summary>Adds <paramref name="times"/> to the counter at <paramref name="index"/>, as a decoder does: the exact values are lost.</summary>
    public void AddCountAt(int index, long times)
    {
        AddAt(index, times);
        Absorb(_layout.LowestAt(index), _layout.HighestAt(index));
    }

    /// <summary>
    /// The value that <paramref name="percentile"/> percent of all values do not exceed, to the precision of the layout and never above <see cref="Max"/>; 0 when empty.
    /// </summary>
    public long ValueAtPercentile(double percentile)
    {
        if (TotalCount == 0)
        {
            return 0;
        }

        // One step towards zero keeps 99.9 % of 1,000 at rank 999 in spite of binary rounding.
        double requested = Math.Clamp(percentile, 0, 100);
        double exactRank = Math.BitDecrement(requested) / 100 * TotalCount;
        long rank = Math.Max(1, (long)Math.Ceiling(exactRank));
        long seen = 0;
        for (int i = 0; i < _counts.Length; i++)
        {
            seen += _counts[i];
            if (seen >= rank)
            {
                return Math.Min(_layout.HighestAt(i), Max);
            }
        }

        return Max;
    }

    /// <summary>Arithmetic mean, to the precision of the layout; 0 when empty.</summary>
    public double Mean()
    {
        if (TotalCount == 0)
        {
            return 0;
        }

        double sum = 0;
        for (int i = 0; i < _counts.Length; i++)
        {
            if (_counts[i] != 0)
            {
                sum += (double)_layout.MiddleAt(i) * _counts[i];
            }
        }

        return sum / TotalCount;
    }

    private void AddAt(int index, long times)
    {
        if (index >= _counts.Length)
        {
            Array.Resize(ref _counts, _layout.CountersFor(_layout.HighestAt(index)));
        }

        if (index > _layout.IndexOf(HighestTrackable))
        {
            HighestTrackable = _layout.HighestAt(index);
        }

        _counts[index] += times;
        TotalCount += times;
    }

    private void Absorb(long lowest, long highest)
    {
        if (lowest > 0)
        {
            _minNonZero = Math.Min(_minNonZero, lowest);
        }

        Max = Math.Max(Max, highest);
    }

    private void RequireSameLayout(BucketLayout other)
    {
        if (other.LowestDiscernible != _layout.LowestDiscernible || other.SignificantDigits != _layout.SignificantDigits)
        {
            throw new ArgumentException("Histograms of different layouts cannot be added.", nameof(other));
        }
    }
}
