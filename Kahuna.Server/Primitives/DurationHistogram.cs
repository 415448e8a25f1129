using System.Numerics;

namespace Kahuna.Server.Primitives;

/// <summary>
/// Counts durations by their length, without allocating: a place for each power of two from 64 µs to 33.6 s, and one
/// for all longer ones. One thread at a time adds; any thread reads, and may see a duration in the counts that is not
/// in the sum yet.
/// </summary>
internal sealed class DurationHistogram
{
    /// <summary>Number of upper bounds; a duration above the last one has a place of its own.</summary>
    public const int Bounds = 20;

    /// <summary>The first bound is 2^6 µs.</summary>
    private const int FirstPower = 6;

    private readonly long[] _counts = new long[Bounds + 1];
    private long _sumUs;

    /// <summary>The upper bound of a place, itself included, in microseconds.</summary>
    public static long BoundUs(int place) => 1L << (FirstPower + place);

    /// <summary>Adds a duration.</summary>
    /// <param name="us">Microseconds; a negative one counts as 0.</param>
    public void Add(long us)
    {
        us = Math.Max(us, 0);
        int place = us <= 1L << FirstPower ? 0 : Math.Min(Bounds, BitOperations.Log2((ulong)(us - 1)) + 1 - FirstPower);

        // A machine with 64 bits writes each of the two at once, and no order between them is promised.
        _counts[place]++;
        _sumUs += us;
    }

    /// <summary>Adds what was counted so far to that of others.</summary>
    /// <param name="counts">A number for each place, <see cref="Bounds"/> and one more.</param>
    /// <param name="sumUs">The sum, in microseconds.</param>
    public void AddTo(Span<long> counts, ref long sumUs)
    {
        for (int i = 0; i < _counts.Length; i++)
        {
            counts[i] += _counts[i];
        }

        sumUs += _sumUs;
    }
}
