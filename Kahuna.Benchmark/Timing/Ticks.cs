using System.Diagnostics;

namespace Kahuna.Benchmark.Timing;

/// <summary>Conversions of the monotonic clock that all times of a run are taken from. Static, any thread.</summary>
internal static class Ticks
{
    private static readonly long s_frequency = Stopwatch.Frequency;

    public static long PerSecond => s_frequency;

    public static long Now => Stopwatch.GetTimestamp();

    public static long From(TimeSpan span) => (long)((Int128)span.Ticks * s_frequency / TimeSpan.TicksPerSecond);

    public static double ToSeconds(long ticks) => (double)ticks / s_frequency;

    public static double ToMilliseconds(long ticks) => 1000.0 * ticks / s_frequency;

    /// <summary>Rounded to the nearest microsecond; never negative.</summary>
    public static long ToMicroseconds(long ticks)
    {
        if (ticks <= 0)
        {
            return 0;
        }

        // The frequency is a constant for the compiler: on Linux only the first branch remains.
        return s_frequency == 1_000_000_000
            ? (ticks + 500) / 1000
            : (long)((((Int128)ticks * 1_000_000) + (s_frequency / 2)) / s_frequency);
    }
}
