using System.Buffers.Binary;
using System.IO.Compression;
using Kahuna.Benchmark.Recording;

namespace Kahuna.Tests.Benchmark;

/// <summary>The histogram against exact samples, and its encoding against what other implementations wrote.</summary>
public sealed class HdrHistogramTests
{
    private static readonly double[] s_percentiles = [0, 1, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100];

    /// <summary>
    /// Written by other implementations: range, values with their counts, and the text. The second is the standard histogram of the C
    /// implementation's tests; the third is written alike by the Java and the C implementation.
    /// </summary>
    public static TheoryData<long, string, string> ForeignVectors => new()
    {
        { 300, "100x1 200x1 250x1", "HISTFAAAACV4nJNpmSzMwMDAwQABzFCaEUrp2H+AsI4zMh1lZEpkAgBdIQSk" },
        { 3_600_000_000, "1000x10000 100000000x1", "HISTFAAAACl4nJNpmSzMwMBgyAABzFCaEURcm7yEwf4DROA8/4I5jNM7mJgAlWkH9g==" },
        { 2048, "2048x1", "HISTFAAAACB4nJNpmSzMwMDAzAABMJoRQnEw2H+AsP7LMwEARZgDpQ==" },
    };

    public static TheoryData<int> Seeds => [.. Enumerable.Range(1, 30)];

    [Theory]
    [MemberData(nameof(Seeds))]
    public void Percentiles_are_exact_to_three_digits(int seed)
    {
        long[] samples = Samples(seed);
        HdrHistogram histogram = Of(samples);
        Array.Sort(samples);
        Assert.Equal(samples.Length, histogram.TotalCount);
        Assert.Equal(samples[^1], histogram.Max);
        Assert.Equal(histogram.Layout.LowestAt(histogram.Layout.IndexOf(samples[0])), histogram.Layout.LowestAt(histogram.Layout.IndexOf(histogram.Min)));
        foreach (double percentile in s_percentiles)
        {
            int rank = Math.Max(1, (int)Math.Ceiling((decimal)percentile / 100 * samples.Length));
            long exact = samples[rank - 1];
            long found = histogram.ValueAtPercentile(percentile);
            Assert.InRange(found, exact, exact + (exact / 1000));
        }

        double mean = samples.Average();
        Assert.InRange(histogram.Mean(), mean * 0.999, mean * 1.001);
    }

    [Theory]
    [MemberData(nameof(Seeds))]
    public void Encoding_round_trips(int seed)
    {
        HdrHistogram histogram = Of(Samples(seed));
        HdrHistogram decoded = HistogramEncoding.FromBase64(HistogramEncoding.ToBase64(histogram));
        AssertSameCounts(histogram, decoded);
        Assert.Equal(histogram.HighestTrackable, decoded.HighestTrackable);
        Assert.Equal(HistogramEncoding.Encode(histogram), HistogramEncoding.Encode(decoded));
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

        HdrHistogram merged = new();
        HdrHistogram added = new();
        foreach (LatencyCounts part in parts)
        {
            part.AddTo(merged);
            HdrHistogram one = new();
            part.AddTo(one);
            added.Add(one);
        }

        HdrHistogram together = Of(samples);
        AssertSameCounts(together, merged);
        AssertSameCounts(together, added);
        Assert.Equal(together.Max, merged.Max);
        Assert.Equal(together.Max, added.Max);
    }

    [Theory]
    [MemberData(nameof(ForeignVectors))]
    public void Foreign_histograms_are_read_and_written_alike(long highest, string values, string text)
    {
        HdrHistogram expected = new(new BucketLayout(1, 3), highest);
        foreach (string[] part in values.Split(' ').Select(value => value.Split('x')))
        {
            expected.Record(long.Parse(part[0], System.Globalization.CultureInfo.InvariantCulture), long.Parse(part[1], System.Globalization.CultureInfo.InvariantCulture));
        }

        byte[] compressed = Convert.FromBase64String(text);
        AssertSameCounts(expected, HistogramEncoding.Decompress(compressed));

        // Two compressors may differ; what they compress may not, apart from the length, into which the C implementation counts the header.
        using ZLibStream zlib = new(new MemoryStream(compressed, 8, compressed.Length - 8), CompressionMode.Decompress);
        using MemoryStream plain = new();
        zlib.CopyTo(plain);
        byte[] theirs = plain.ToArray();
        byte[] ours = HistogramEncoding.Encode(expected);
        Assert.Equal(theirs[..4], ours[..4]);
        Assert.Equal(theirs[8..], ours[8..]);
    }

    [Fact]
    public void Header_is_that_of_version_2()
    {
        byte[] compressed = HistogramEncoding.Compress(Of([1, 2, 3]));
        Assert.Equal(0x1c849314, BinaryPrimitives.ReadInt32BigEndian(compressed));
        Assert.Equal(compressed.Length - 8, BinaryPrimitives.ReadInt32BigEndian(compressed.AsSpan(4)));
        byte[] plain = HistogramEncoding.Encode(Of([1, 2, 3]));
        Assert.Equal(0x1c849313, BinaryPrimitives.ReadInt32BigEndian(plain));
        Assert.StartsWith("HISTF", HistogramEncoding.ToBase64(Of([1, 2, 3])), StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(Seeds))]
    public void Damaged_encodings_are_refused_or_harmless(int seed)
    {
        Random random = new(seed);
        byte[] bytes = HistogramEncoding.Encode(Of(Samples(seed)));
        for (int i = 0; i < 200; i++)
        {
            byte[] damaged = (byte[])bytes.Clone();
            damaged[random.Next(damaged.Length)] ^= (byte)(1 << random.Next(8));
            byte[] cut = damaged[..random.Next(damaged.Length + 1)];
            Exception? failure = Record.Exception(() => HistogramEncoding.Decode(cut));
            Assert.True(failure is null or InvalidDataException, failure?.ToString());
        }
    }

    [Fact]
    public void Empty_histogram_is_all_zero()
    {
        HdrHistogram empty = new();
        Assert.Equal((0L, 0L, 0L, 0L, 0.0), (empty.TotalCount, empty.Min, empty.Max, empty.ValueAtPercentile(99), empty.Mean()));
        Assert.Equal(0, HistogramEncoding.FromBase64(HistogramEncoding.ToBase64(empty)).TotalCount);
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
        BucketLayout layout = BucketLayout.Microseconds;
        int index = layout.IndexOf(value);
        Assert.InRange(value, layout.LowestAt(index), layout.HighestAt(index));
        Assert.InRange(layout.HighestAt(index) - layout.LowestAt(index), 0, value / 1000);
        Assert.Equal(index, layout.IndexOf(layout.LowestAt(index)));
        Assert.Equal(index, layout.IndexOf(layout.HighestAt(index)));
        Assert.Equal(layout.HighestAt(index) + 1, layout.LowestAt(index + 1));
    }

    [Fact]
    public void Values_beyond_the_range_extend_it()
    {
        HdrHistogram histogram = new();
        histogram.Record(HdrHistogram.HourMicroseconds * 3);
        Assert.Equal(HdrHistogram.HourMicroseconds * 3, histogram.ValueAtPercentile(50));
        Assert.True(histogram.HighestTrackable >= HdrHistogram.HourMicroseconds * 3);
        Assert.Equal(1, HistogramEncoding.FromBase64(HistogramEncoding.ToBase64(histogram)).TotalCount);
    }

    [Fact]
    public void Log_has_a_header_and_a_line_per_histogram()
    {
        using StringWriter writer = new() { NewLine = "\n" };
        HdrHistogram histogram = Of([100, 200, 2769]);
        HistogramLog.Write(writer, DateTimeOffset.FromUnixTimeMilliseconds(1441812279474), 30.5, [("get", histogram)]);
        string[] lines = writer.ToString().Split('\n', StringSplitOptions.RemoveEmptyEntries);
        Assert.Equal("#[Histogram log format version 1.3]", lines[0]);
        Assert.Equal("#[StartTime: 1441812279.474 (seconds since epoch), Wed Sep 09 15:24:39 UTC 2015]", lines[2]);
        Assert.Equal("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"", lines[3]);
        Assert.StartsWith("Tag=get,0.000,30.500,2.769,HISTF", lines[4], StringComparison.Ordinal);
        AssertSameCounts(histogram, HistogramEncoding.FromBase64(lines[4].Split(',')[^1]));
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
                _ => random.Next(1000) == 0 ? random.NextInt64(1_000_000, HdrHistogram.HourMicroseconds) : random.Next(5000),
            };
        }

        return samples;
    }

    private static HdrHistogram Of(long[] samples)
    {
        HdrHistogram histogram = new();
        foreach (long sample in samples)
        {
            histogram.Record(sample);
        }

        return histogram;
    }

    private static void AssertSameCounts(HdrHistogram expected, HdrHistogram actual)
    {
        Assert.Equal(expected.TotalCount, actual.TotalCount);
        Assert.Equal(expected.CounterCount, actual.CounterCount);
        for (int i = 0; i < expected.CounterCount; i++)
        {
            Assert.Equal(expected.CountAt(i), actual.CountAt(i));
        }
    }
}
