using System.Runtime.InteropServices;

namespace Kahuna.Benchmark.Timing;

/// <summary>
/// Sleeps to within a few microseconds without spinning: a spinning thread would take a core from the system under
/// load. Uses the kernel's high-resolution sleep on 64-bit Linux and the runtime's sleep plus a short spin elsewhere.
/// Static, any thread.
/// </summary>
internal static partial class PreciseSleep
{
    private const int ClockMonotonic = 1;
    private const int SetTimerSlack = 29;

    /// <summary>The runtime's sleep is good to about this much; the rest is spun.</summary>
    private const double CoarseMs = 2;

    private static readonly bool s_isNative = OperatingSystem.IsLinux() && Environment.Is64BitProcess;

    /// <summary>
    /// Asks the kernel not to group the calling thread's wake-ups with others (by default it may delay them by 50 µs).
    /// </summary>
    public static void PrepareThread()
    {
        if (s_isNative)
        {
            // A refusal only makes sleeping less exact, which the schedule lag reports.
            _ = PrCtl(SetTimerSlack, 1, 0, 0, 0);
        }
    }

    /// <summary>
    /// Returns at <paramref name="deadline"/> (clock ticks) or as soon after as the system allows; at once when it has
    /// passed.
    /// </summary>
    public static void Until(long deadline)
    {
        long left;
        while ((left = deadline - Ticks.Now) > 0)
        {
            if (s_isNative)
            {
                SleepNatively(left);
            }
            else if (Ticks.ToMilliseconds(left) > CoarseMs)
            {
                Thread.Sleep((int)(Ticks.ToMilliseconds(left) - CoarseMs) + 1);
            }
            else
            {
                Thread.SpinWait(20);
            }
        }
    }

    private static void SleepNatively(long left)
    {
        long nanoseconds = (long)((Int128)left * 1_000_000_000 / Ticks.PerSecond);
        TimeSpec time = new() { Seconds = nanoseconds / 1_000_000_000, Nanoseconds = nanoseconds % 1_000_000_000 };

        // An early return (a signal) is answered by the caller's loop.
        _ = ClockNanoSleep(ClockMonotonic, 0, in time, IntPtr.Zero);
    }

    [LibraryImport("libc", EntryPoint = "clock_nanosleep")]
    private static partial int ClockNanoSleep(int clock, int flags, in TimeSpec request, IntPtr remaining);

    [LibraryImport("libc", EntryPoint = "prctl")]
    private static partial int PrCtl(int option, nuint first, nuint second, nuint third, nuint fourth);

    /// <summary>The C structure <c>timespec</c> of 64-bit Linux.</summary>
    [StructLayout(LayoutKind.Sequential)]
    private struct TimeSpec
    {
        public long Seconds;
        public long Nanoseconds;
    }
}
