using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Hosting.Measurements;

/// <summary>Durations are counted below the first bound that they do not exceed.</summary>
public sealed class DurationHistogramTests
{
    [Theory]
    [InlineData(-5, 0)]
    [InlineData(0, 0)]
    [InlineData(63, 0)]
    [InlineData(64, 0)]
    [InlineData(65, 1)]
    [InlineData(128, 1)]
    [InlineData(129, 2)]
    [InlineData(1_000_000, 14)]
    [InlineData(33_554_432, 19)]
    [InlineData(33_554_433, 20)]
    [InlineData(long.MaxValue / 4, 20)]
    public void A_duration_has_its_place(long us, int place)
    {
        DurationHistogram histogram = new();
        histogram.Add(us);
        long[] counts = new long[DurationHistogram.Bounds + 1];
        long sum = 0;
        histogram.AddTo(counts, ref sum);

        Assert.Equal(1, counts[place]);
        Assert.Equal(1, counts.Sum());
        Assert.Equal(Math.Max(0, us), sum);
    }

    [Fact]
    public void Every_bound_is_the_longest_of_its_place()
    {
        for (int place = 0; place < DurationHistogram.Bounds; place++)
        {
            DurationHistogram histogram = new();
            histogram.Add(DurationHistogram.BoundUs(place));
            histogram.Add(DurationHistogram.BoundUs(place) + 1);
            long[] counts = new long[DurationHistogram.Bounds + 1];
            long sum = 0;
            histogram.AddTo(counts, ref sum);

            Assert.Equal((1, 1), (counts[place], counts[place + 1]));
        }
    }
}
