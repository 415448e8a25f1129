using System.Buffers.Binary;
using System.IO.Compression;
using HdrHistogram;
using Kahuna.Benchmark.Recording;

namespace Kahuna.Tests.Benchmark;

/// <summary>
/// The histogram against exact samples, and its encoding against what other implementations wrote and the package
/// reads.
/// </summary>
public sealed class LatencyHistogramTests
{
    private static readonly double[] s_percentiles = [0, 1, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100];

    public static TheoryData<int> Seeds => [.. Enumerable.Range(1, 30)];

    [Theory]
    [MemberData(nameof(Seeds))]
    public void Percentiles_are_exact_to_three_digits(int seed)
    {
        long[] samples = Samples(seed);
        LatencyHistogram histogram = Of(samples);
        Array.Sort(samples);
        Assert.Equal(samples.Length, histogram.TotalCount);
        Assert.Equal((samples[0], samples[^1]), (histogram.Min, histogram.Max));
        foreach (double percentile in s_percentiles)
        {
            int rank = Math.Max(
                1, (int)Math.Round((decimal)percentile / 100 * samples.Length, MidpointRounding.AwayFromZero));
            long exact = samples[rank - 1];
            long found = histogram.ValueAtPercentile(percentile);
            Assert.InRange(found, exact, exact + (exact / 1000));
        }

        double mean = samples.Average();
        Assert.InRange(histogram.Mean(), mean * 0.999, mean * 1.001);
    }

    [Theory]
    [MemberData(nameof(Seeds))]
    public void Encoding_is_read_by_the_package(int seed)
    {
        LatencyHistogram histogram = Of(Samples(seed));
        HistogramBase decoded = Decode(histogram.ToBase64());
        Assert.Equal(histogram.TotalCount, decoded.TotalCount);
        Assert.Equal(LatencyHistogram.HourMicroseconds, decoded.HighestTrackableValue);
        foreach (double percentile in s_percentiles)
        {
            Assert.Equal(
                histogram.ValueAtPercentile(percentile),
                Math.Min(decoded.GetValueAtPercentile(percentile), histogram.Max));
        }
    }

    [Theory]
    [MemberData(nameof(Seeds))]
    public void Merging_equals_recording_together(int seed)
    {
        long[] samples = Samples(seed);
        LatencyCounts[] parts = [new LatencyCounts(), new LatencyCounts(), new LatencyCounts()];
        for (int i = 0; i < samples.Length; i++)
        {
            parts[i % parts.Length].Record(samples[i]);
        }

        LatencyHistogram merged = new();
        LatencyHistogram added = new();
        foreach (LatencyCounts part in parts)
        {
            part.AddTo(merged);
            LatencyHistogram one = new();
            part.AddTo(one);
            added.Add(one);
        }

        LatencyHistogram together = Of(samples);
        Assert.Equal(Plain(together.ToBase64()), Plain(merged.ToBase64()));
        Assert.Equal(Plain(together.ToBase64()), Plain(added.ToBase64()));
        Assert.Equal((together.Max, together.Max), (merged.Max, added.Max));
    }

    /// <summary>The standard histogram of the C implementation's tests, as that wrote it.</summary>
    [Fact]
    public void Foreign_histogram_is_written_alike()
    {
        LatencyHistogram expected = new();
        expected.Record(1_000, 10_000);
        expected.Record(100_000_000);
        const string text = "HISTFAAAACl4nJNpmSzMwMBgyAABzFCaEURcm7yEwf4DROA8/4I5jNM7mJgAlWkH9g==";
        // Two compressors may differ; what they compress may not, apart from the length, into which the C
        // implementation counts the header.
        byte[] theirs = Plain(text);
        byte[] ours = Plain(expected.ToBase64());
        Assert.Equal(theirs[..4], ours[..4]);
        Assert.Equal(theirs[8..], ours[8..]);
    }

    [Fact]
    public void Header_is_that_of_version_2()
    {
        string text = Of([1, 2, 3]).ToBase64();
        Assert.StartsWith("HISTF", text, StringComparison.Ordinal);
        byte[] compressed = Convert.FromBase64String(text);
        Assert.Equal(0x1c849314, BinaryPrimitives.ReadInt32BigEndian(compressed));
        Assert.Equal(compressed.Length - 8, BinaryPrimitives.ReadInt32BigEndian(compressed.AsSpan(4)));
        Assert.Equal(0x1c849313, BinaryPrimitives.ReadInt32BigEndian(Plain(text)));
    }

    [Fact]
    public void Empty_histogram_is_all_zero()
    {
        LatencyHistogram empty = new();
        Assert.Equal(
            (0L, 0L, 0L, 0L, 0.0), (empty.TotalCount, empty.Min, empty.Max, empty.ValueAtPercentile(99), empty.Mean()));
        Assert.Equal(0, Decode(empty.ToBase64()).TotalCount);
    }

    [Theory]
    [InlineData(0)]
    [InlineData(1)]
    [InlineData(2047)]
    [InlineData(2048)]
    [InlineData(2049)]
    [InlineData(4095)]
    [InlineData(4096)]
    [InlineData(3_600_000_000)]
    [InlineData(long.MaxValue / 2)]
    public void Every_value_lies_in_its_own_bucket(long value)
    {
        int index = BucketLayout.IndexOf(value);
        Assert.InRange(value, BucketLayout.LowestAt(index), BucketLayout.HighestAt(index));
        Assert.InRange(BucketLayout.HighestAt(index) - BucketLayout.LowestAt(index), 0, value / 1000);
        Assert.Equal(index, BucketLayout.IndexOf(BucketLayout.LowestAt(index)));
        Assert.Equal(index, BucketLayout.IndexOf(BucketLayout.HighestAt(index)));
        Assert.Equal(BucketLayout.HighestAt(index) + 1, BucketLayout.LowestAt(index + 1));
        Assert.True(index < BucketLayout.CountersFor(index));
    }

    /// <summary>The package takes no such value: it throws.</summary>
    [Theory]
    [InlineData(LatencyHistogram.HourMicroseconds * 3, LatencyHistogram.HourMicroseconds)]
    [InlineData(long.MaxValue, LatencyHistogram.HourMicroseconds)]
    [InlineData(-1, 0)]
    public void Values_beyond_the_range_count_as_its_end(long value, long counted)
    {
        LatencyHistogram histogram = new();
        histogram.Record(value);
        Assert.Equal((counted, counted, counted), (histogram.Min, histogram.Max, histogram.ValueAtPercentile(50)));
        Assert.Equal(1, Decode(histogram.ToBase64()).TotalCount);
        if (value > 0)
        {
            LatencyCounts counts = new();
            counts.Record(value);
            LatencyHistogram total = new();
            counts.AddTo(total);
            Assert.Equal((1L, counted), (total.TotalCount, total.Max));
        }
    }

    [Fact]
    public void Log_has_a_header_and_a_line_per_histogram()
    {
        using StringWriter writer = new() { NewLine = "\n" };
        LatencyHistogram histogram = Of([100, 200, 2769]);
        HistogramLog.Write(writer, DateTimeOffset.FromUnixTimeMilliseconds(1441812279474), 30.5, [("get", histogram)]);
        string[] lines = writer.ToString().Split('\n', StringSplitOptions.RemoveEmptyEntries);
        Assert.Equal("#[Histogram log format version 1.3]", lines[0]);
        Assert.Equal("#[StartTime: 1441812279.474 (seconds since epoch), Wed Sep 09 15:24:39 UTC 2015]", lines[2]);
        Assert.Equal(
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"", lines[3]);
        Assert.StartsWith("Tag=get,0.000,30.500,2.769,HISTF", lines[4], StringComparison.Ordinal);
        Assert.Equal(3, Decode(lines[4].Split(',')[^1]).TotalCount);
    }

    internal static HistogramBase Decode(string text) =>
        HistogramEncoding.DecodeFromCompressedByteBuffer(
            HdrHistogram.Utilities.ByteBuffer.Allocate(Convert.FromBase64String(text)), 1);

    private static byte[] Plain(string text)
    {
        byte[] compressed = Convert.FromBase64String(text);
        using ZLibStream zlib = new(new MemoryStream(compressed, 8, compressed.Length - 8), CompressionMode.Decompress);
        using MemoryStream plain = new();
        zlib.CopyTo(plain);
        return plain.ToArray();
    }

    /// <summary>Samples of one of three shapes: narrow, over all magnitudes, or with a long tail.</summary>
    private static long[] Samples(int seed)
    {
        Random random = new(seed);
        long[] samples = new long[1 + random.Next(5000)];
        for (int i = 0; i < samples.Length; i++)
        {
            samples[i] = (seed % 3) switch
            {
                0 => 200 + random.Next(100),
                1 => (long)Math.Exp(random.NextDouble() * 22),
                _ =>
                    random.Next(1000) == 0
                        ? random.NextInt64(1_000_000, LatencyHistogram.HourMicroseconds)
                        : random.Next(5000),
            };
        }

        return samples;
    }

    private static LatencyHistogram Of(long[] samples)
    {
        LatencyHistogram histogram = new();
        foreach (long sample in samples)
        {
            histogram.Record(sample);
        }

        return histogram;
    }
}
