using Kahuna.Benchmark.Pacing;

namespace Kahuna.Tests.Benchmark;

/// <summary>The schedule of an open loop, computed without a clock.</summary>
public sealed class PaceScheduleTests
{
    private const long Second = 1_000_000_000;
    private const long Start = 123_456_789_012_345;

    [Theory]
    [InlineData(1)]
    [InlineData(3)]
    [InlineData(7)]
    [InlineData(997)]
    [InlineData(10_000)]
    [InlineData(333_333)]
    [InlineData(9_999_999)]
    public void Rate_is_exact_over_any_time(long rate)
    {
        PaceSchedule schedule = new(Start, rate, Second);
        foreach (long seconds in new long[] { 1, 10, 3600, 86_400 })
        {
            // Request 0 is due at once, so that request number rate * seconds is the first one of the next second.
            Assert.Equal(Start + (seconds * Second), schedule.DueAt(rate * seconds));
            Assert.Equal((rate * seconds) + 1, schedule.DueCount(Start + (seconds * Second)));
            Assert.Equal(rate * seconds, schedule.DueCount(Start + (seconds * Second) - 1));
        }
    }

    [Theory]
    [InlineData(7)]
    [InlineData(12_345)]
    [InlineData(9_999_999)]
    public void Requests_are_evenly_spaced(long rate)
    {
        PaceSchedule schedule = new(Start, rate, Second);
        for (long number = 0; number < 20_000; number++)
        {
            long due = schedule.DueAt(number);
            Assert.InRange(schedule.DueAt(number + 1) - due, Second / rate, (Second / rate) + 1);
            Assert.Equal(number + 1, schedule.DueCount(due));
            Assert.Equal(number, schedule.DueCount(due - 1));
        }
    }

    [Fact]
    public void Nothing_is_due_before_the_start() =>
        Assert.Equal(0, new PaceSchedule(Start, 1000, Second).DueCount(Start - 1));
}
