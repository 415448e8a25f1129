using System.Numerics;

namespace Kahuna.Benchmark.Recording;

/// <summary>
/// Where the workers' counters count a value, as a log-linear histogram does (G. Tene, HdrHistogram): values below
/// 2,048 have a counter each; above, buckets double in width, and each is divided into 1,024 parts. The package has the
/// same buckets. Static, any thread.
/// </summary>
internal static class BucketLayout
{
    public const int SignificantDigits = 3;

    private const int HalfMagnitude = 10;
    private const int Half = 1 << HalfMagnitude;

    /// <summary>Index of the counter that counts <paramref name="value"/>, which is not negative.</summary>
    public static int IndexOf(long value)
    {
        int bucket = BitOperations.Log2((ulong)(value | ((2 * Half) - 1))) - HalfMagnitude;
        return (bucket << HalfMagnitude) + (int)(value >> bucket);
    }

    /// <summary>Smallest value that the counter at <paramref name="index"/> counts.</summary>
    public static long LowestAt(int index)
    {
        int bucket = BucketOf(index);
        return (long)(index - (bucket << HalfMagnitude)) << bucket;
    }

    /// <summary>Largest value that the counter at <paramref name="index"/> counts.</summary>
    public static long HighestAt(int index) => LowestAt(index) + (1L << BucketOf(index)) - 1;

    /// <summary>
    /// Number of counters that values up to the one at <paramref name="index"/> need: whole half buckets.
    /// </summary>
    public static int CountersFor(int index) => Math.Max(2 * Half, ((index / Half) + 1) * Half);

    private static int BucketOf(int index) => Math.Max(0, (index >> HalfMagnitude) - 1);
}
