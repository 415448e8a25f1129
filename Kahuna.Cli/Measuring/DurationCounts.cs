namespace Kahuna.Cli.Measuring;

/// <summary>
/// Counts durations in buckets of 3 % width, from a microsecond to an hour, so that its size does not depend on their
/// number. Not thread-safe: each worker has one, and they are added at the end.
/// </summary>
internal sealed class DurationCounts
{
    /// <summary>Buckets of one doubling: 2 to the power of 1/24 is 1.03.</summary>
    private const int PerDoubling = 24;

    /// <summary>2 to the power of 32 microseconds is 72 minutes.</summary>
    private const int Doublings = 32;

    private readonly long[] _counts = new long[(PerDoubling * Doublings) + 1];

    /// <summary>Durations that were counted.</summary>
    public long Count { get; private set; }

    /// <summary>The longest duration, exactly.</summary>
    public TimeSpan Max { get; private set; }

    /// <summary>Counts a duration.</summary>
    public void Add(TimeSpan duration)
    {
        double bucket = Math.Ceiling(Math.Log2(Math.Max(1, duration.TotalMicroseconds)) * PerDoubling);
        _counts[(int)Math.Min(bucket, _counts.Length - 1)]++;
        Count++;
        Max = duration > Max ? duration : Max;
    }

    /// <summary>Adds what another has counted.</summary>
    public void Add(DurationCounts other)
    {
        for (int i = 0; i < _counts.Length; i++)
        {
            _counts[i] += other._counts[i];
        }

        Count += other.Count;
        Max = other.Max > Max ? other.Max : Max;
    }

    /// <summary>
    /// A duration that this share of all does not exceed, at most 3 % above the exact one; null: nothing was counted.
    /// </summary>
    /// <param name="share">Above 0, up to 1.</param>
    public TimeSpan? Quantile(double share)
    {
        long rank = Math.Max(1, (long)Math.Ceiling(Count * share));
        long seen = 0;
        for (int i = 0; i < _counts.Length && Count > 0; i++)
        {
            seen += _counts[i];
            if (seen >= rank)
            {
                TimeSpan bound = TimeSpan.FromMicroseconds(Math.Pow(2, (double)i / PerDoubling));
                return bound < Max && i < _counts.Length - 1 ? bound : Max;
            }
        }

        return null;
    }
}
