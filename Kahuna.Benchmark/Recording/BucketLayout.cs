using System.Numerics;

namespace Kahuna.Benchmark.Recording;

/// <summary>
/// Where a value is counted in a log-linear histogram (G. Tene, HdrHistogram): buckets double in width, and each is divided into as many
/// equal sub-buckets as the significant digits need. A value type without state; any thread.
/// </summary>
internal readonly struct BucketLayout
{
    private readonly int _unitMagnitude;
    private readonly int _subBucketHalfMagnitude;
    private readonly int _leadingZerosBase;
    private readonly long _subBucketMask;

    /// <summary>Lays out values from <paramref name="lowestDiscernible"/> upwards with a precision of 0 to 5 significant digits.</summary>
    public BucketLayout(long lowestDiscernible, int significantDigits)
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(lowestDiscernible, 1);
        ArgumentOutOfRangeException.ThrowIfLessThan(significantDigits, 0);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(significantDigits, 5);
        LowestDiscernible = lowestDiscernible;
        SignificantDigits = significantDigits;

        // Every value below 2 * 10^digits keeps single-unit resolution, so that the first bucket needs that many sub-buckets,
        // rounded up to a power of two.
        ulong singleUnitMax = 2UL * (ulong)Math.Pow(10, significantDigits);
        int subBucketMagnitude = BitOperations.Log2(singleUnitMax - 1) + 1;
        _subBucketHalfMagnitude = subBucketMagnitude - 1;
        _unitMagnitude = BitOperations.Log2((ulong)lowestDiscernible);
        _subBucketMask = ((1L << subBucketMagnitude) - 1) << _unitMagnitude;
        _leadingZerosBase = 64 - _unitMagnitude - subBucketMagnitude;
    }

    /// <summary>The layout of this tool: microseconds with 3 significant digits.</summary>
    public static BucketLayout Microseconds { get; } = new(1, 3);

    public long LowestDiscernible { get; }

    public int SignificantDigits { get; }

    /// <summary>Index of the counter that counts <paramref name="value"/>, which is not negative.</summary>
    public int IndexOf(long value)
    {
        int bucket = _leadingZerosBase - BitOperations.LeadingZeroCount((ulong)(value | _subBucketMask));
        int subBucket = (int)(value >> (bucket + _unitMagnitude));
        return ((bucket + 1) << _subBucketHalfMagnitude) + subBucket - (1 << _subBucketHalfMagnitude);
    }

    /// <summary>Smallest value that the counter at <paramref name="index"/> counts.</summary>
    public long LowestAt(int index)
    {
        (int bucket, int subBucket) = Split(index);
        return (long)subBucket << (bucket + _unitMagnitude);
    }

    /// <summary>Largest value that the counter at <paramref name="index"/> counts.</summary>
    public long HighestAt(int index)
    {
        (int bucket, int subBucket) = Split(index);
        return (((long)subBucket + 1) << (bucket + _unitMagnitude)) - 1;
    }

    /// <summary>Middle of the values that the counter at <paramref name="index"/> counts; the mean is computed from it.</summary>
    public long MiddleAt(int index)
    {
        (int bucket, int subBucket) = Split(index);
        return ((long)subBucket << (bucket + _unitMagnitude)) + ((1L << (bucket + _unitMagnitude)) >> 1);
    }

    /// <summary>Number of counters that a histogram up to <paramref name="highest"/> has: whole half buckets.</summary>
    public int CountersFor(long highest)
    {
        int half = 1 << _subBucketHalfMagnitude;
        return Math.Max(2 * half, ((IndexOf(highest) / half) + 1) * half);
    }

    private (int Bucket, int SubBucket) Split(int index)
    {
        int half = 1 << _subBucketHalfMagnitude;
        int bucket = (index >> _subBucketHalfMagnitude) - 1;
        int subBucket = (index & (half - 1)) + half;
        return bucket < 0 ? (0, subBucket - half) : (bucket, subBucket);
    }
}
