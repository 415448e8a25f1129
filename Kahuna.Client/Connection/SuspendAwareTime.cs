using System.Runtime.InteropServices;

namespace Kahuna.Client.Connection;

/// <summary>
/// The system's clock with timestamps that advance while the machine is suspended, from Linux's CLOCK_BOOTTIME. .NET's
/// timestamps stop there, so a holder would believe in a lease that the cluster has long given to another. Timers are
/// the system's. Immutable, any thread.
/// </summary>
internal sealed partial class SuspendAwareTime : TimeProvider
{
    private const int BootTime = 7;
    private const long NsPerSecond = 1_000_000_000;

    private SuspendAwareTime()
    {
    }

    /// <summary>The clock; null where the system has none, or where .NET's own timestamps advance as well.</summary>
    public static SuspendAwareTime? Instance { get; } = IsServed() ? new SuspendAwareTime() : null;

    /// <inheritdoc/>
    public override long TimestampFrequency => NsPerSecond;

    /// <summary>The clock for a client: this one instead of the system's, and any other clock unchanged.</summary>
    public static TimeProvider InPlaceOf(TimeProvider given) =>
        ReferenceEquals(given, System) && Instance is { } aware ? aware : given;

    /// <inheritdoc/>
    public override long GetTimestamp()
    {
        _ = ReadClock(BootTime, out TimeSpec now);
        return (now.Seconds * NsPerSecond) + now.Nanoseconds;
    }

    private static bool IsServed()
    {
        // The structure below has the layout of 64-bit systems.
        if (!OperatingSystem.IsLinux() || nint.Size != sizeof(long))
        {
            return false;
        }

        try
        {
            return ReadClock(BootTime, out _) == 0;
        }
        catch (Exception missing) when (missing is DllNotFoundException or EntryPointNotFoundException)
        {
            return false;
        }
    }

    [LibraryImport("libc", EntryPoint = "clock_gettime")]
    [SuppressGCTransition]
    private static partial int ReadClock(int clock, out TimeSpec now);

    [StructLayout(LayoutKind.Sequential)]
    private struct TimeSpec
    {
        public long Seconds;
        public long Nanoseconds;
    }
}
