using System.Buffers.Binary;
using System.IO.Compression;
using HdrHistogram;
using HdrHistogram.Encoding;
using HdrHistogram.Utilities;

namespace Kahuna.Benchmark.Recording;

/// <summary>
/// Latencies in microseconds with 3 significant digits, up to an hour; a longer one counts as an hour, and a negative
/// one as 0. What is beside the package's histogram: counters of workers, and the exact largest and smallest value,
/// where that keeps the ends of their buckets only. Takes up 190 KB from the beginning. Owned by one thread at a time.
/// </summary>
internal sealed class LatencyHistogram
{
    /// <summary>
    /// One hour: the range, which is also stated in the encoding, so that other readers size their tables for it.
    /// </summary>
    public const long HourMicroseconds = 3_600_000_000;

    /// <summary>
    /// Of a compressed V2 histogram; its low half byte names the width of a counter word, which V2 fixes at 0x10.
    /// </summary>
    private const int CompressedCookie = 0x1c849304 | 0x10;

    private readonly LongHistogram _counts = new(1, HourMicroseconds, BucketLayout.SignificantDigits);
    private long _min = long.MaxValue;

    public long TotalCount => _counts.TotalCount;

    /// <summary>Largest recorded value, exactly; 0 when empty.</summary>
    public long Max { get; private set; }

    /// <summary>Smallest recorded value; 0 when empty.</summary>
    public long Min => TotalCount == 0 ? 0 : _min;

    /// <summary>Counts <paramref name="value"/> <paramref name="times"/> times.</summary>
    public void Record(long value, long times = 1)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(times);
        if (times > 0)
        {
            long counted = Math.Clamp(value, 0, HourMicroseconds);
            _counts.RecordValueWithCount(counted, times);
            Absorb(counted, counted);
        }
    }

    public void Add(LatencyHistogram other)
    {
        _counts.Add(other._counts);
        Absorb(other._min, other.Max);
    }

    /// <summary>
    /// Adds counters of <see cref="BucketLayout"/> together with the exact largest value that they count.
    /// </summary>
    public void AddCounts(ReadOnlySpan<uint> counts, long max)
    {
        for (int i = 0; i < counts.Length; i++)
        {
            if (counts[i] > 0)
            {
                long lowest = BucketLayout.LowestAt(i);
                _counts.RecordValueWithCount(lowest, counts[i]);
                Absorb(lowest, max);
            }
        }
    }

    /// <summary>
    /// The value that <paramref name="percentile"/> percent of all values do not exceed, to 3 digits and never above
    /// <see cref="Max"/>; 0 when empty. Its rank is rounded to the nearest one, as the package does.
    /// </summary>
    public long ValueAtPercentile(double percentile) =>
        TotalCount == 0 ? 0 : Math.Min(_counts.GetValueAtPercentile(Math.Clamp(percentile, 0, 100)), Max);

    /// <summary>Arithmetic mean, to 3 digits; 0 when empty.</summary>
    public double Mean() => TotalCount == 0 ? 0 : _counts.GetMean();

    /// <summary>
    /// The V2 encoding of HdrHistogram, compressed and in base64: what a histogram log holds and what readers take as
    /// text. The package's own compression is not used: it compresses its whole buffer, zeros behind the counters
    /// included, which makes several times as much text, and more than strict readers take.
    /// </summary>
    public string ToBase64()
    {
        ByteBuffer buffer = ByteBuffer.Allocate(_counts.GetNeededByteBufferCapacity());
        byte[] plain = new byte[_counts.Encode(buffer, HistogramEncoderV2.Instance)];
        buffer.Position = 0;
        for (int i = 0; i < plain.Length; i++)
        {
            plain[i] = buffer.Get();
        }

        using MemoryStream body = new();
        body.Write(stackalloc byte[2 * sizeof(int)]);
        using (ZLibStream zlib = new(body, CompressionLevel.Optimal, leaveOpen: true))
        {
            zlib.Write(plain);
        }

        byte[] bytes = body.ToArray();
        BinaryPrimitives.WriteInt32BigEndian(bytes, CompressedCookie);
        BinaryPrimitives.WriteInt32BigEndian(bytes.AsSpan(sizeof(int)), bytes.Length - (2 * sizeof(int)));
        return Convert.ToBase64String(bytes);
    }

    private void Absorb(long lowest, long highest)
    {
        _min = Math.Min(_min, lowest);
        Max = Math.Max(Max, highest);
    }
}
