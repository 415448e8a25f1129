using System.Runtime.InteropServices;

namespace Kahuna.Client.Connection;

/// <summary>
/// The system's clock with timestamps that go on while the machine is suspended, from Linux's CLOCK_BOOTTIME: .NET's
/// own stand still there, so that a holder would take a lease for its own that the cluster has long given to others.
/// Timers are the system's. Immutable, any thread.
/// </summary>
internal sealed partial class SuspendAwareTime : TimeProvider
{
    private const int BootTime = 7;
    private const long NsPerSecond = 1_000_000_000;

    private SuspendAwareTime()
    {
    }

    /// <summary>The one there is; null where the system has no such clock, or .NET's own goes on as well.</summary>
    public static SuspendAwareTime? Instance { get; } = IsServed() ? new SuspendAwareTime() : null;

    /// <inheritdoc/>
    public override long TimestampFrequency => NsPerSecond;

    /// <summary>
    /// What to use where a client was given this clock: the suspend-aware one in place of the system's, and any other
    /// as it is.
    /// </summary>
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
