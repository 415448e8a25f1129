using System.Runtime.InteropServices;
using Kahuna.Wire;

namespace Kahuna.Client.Connection;

/// <summary>
/// The time provider's timestamps with the conversions that the connection needs. Immutable, any thread.
/// </summary>
internal sealed class ConnectionClock(TimeProvider time)
{
    private readonly long _perMs = Math.Max(1, time.TimestampFrequency / 1000);

    /// <summary>The current timestamp.</summary>
    public long Now => time.GetTimestamp();

    /// <summary>Converts a span to a difference of timestamps.</summary>
    public long Of(TimeSpan span) => (long)(span.TotalMilliseconds * _perMs);

    /// <summary>The timestamp after a span from now; the maximum when it would overflow.</summary>
    public long After(TimeSpan span) => Later(Now, Of(span));

    /// <summary>The sum of a timestamp and a difference; the maximum when it would overflow.</summary>
    public static long Later(long moment, long difference) =>
        difference > long.MaxValue - moment ? long.MaxValue : moment + difference;

    /// <summary>A span in whole milliseconds, rounded away from zero.</summary>
    public static long WholeMs(TimeSpan span)
    {
        (long wholeMs, long rest) = Math.DivRem(span.Ticks, TimeSpan.TicksPerMillisecond);
        return wholeMs + Math.Sign(rest);
    }

    /// <summary>Converts milliseconds to a difference of timestamps.</summary>
    public long OfMs(long ms) => ms * _perMs;

    /// <summary>Converts a difference of timestamps to whole milliseconds, rounded towards zero.</summary>
    public long Ms(long difference) => difference / _perMs;

    /// <summary>Converts a difference of timestamps to a span.</summary>
    public TimeSpan Span(long difference) => TimeSpan.FromMilliseconds((double)difference / _perMs);

    /// <summary>Converts a remaining time to the wire's wait limit, in which 0 would mean no limit.</summary>
    public uint WaitMs(long remaining) => (uint)Math.Clamp(remaining / _perMs, 1, Limits.CommandWaitMsMax);
}

/// <summary>
/// Exponential backoff with jitter: the pause doubles from the minimum to the maximum, and its second half is random,
/// so that clients do not retry in step. Any thread.
/// </summary>
internal sealed class Backoff(TimeSpan min, TimeSpan max, int seed)
{
    private readonly Random _random = new(seed);
    private readonly Lock _lock = new();

    /// <summary>The pause after <paramref name="attempts"/> attempts, 1 or more.</summary>
    public TimeSpan After(int attempts)
    {
        double full = Math.Min(max.TotalMilliseconds, min.TotalMilliseconds * Math.Pow(2, Math.Min(attempts - 1, 30)));
        lock (_lock)
        {
            return TimeSpan.FromMilliseconds((full / 2) + (_random.NextDouble() * full / 2));
        }
    }
}

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
