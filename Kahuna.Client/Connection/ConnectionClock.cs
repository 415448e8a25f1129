using Kahuna.Client.Wire;

namespace Kahuna.Client.Connection;

/// <summary>The time provider's timestamps, which only grow, with what the connection needs to reckon with them. Immutable, any thread.</summary>
internal sealed class ConnectionClock(TimeProvider time)
{
    private readonly long _perMs = Math.Max(1, time.TimestampFrequency / 1000);

    /// <summary>This moment.</summary>
    public long Now => time.GetTimestamp();

    /// <summary>A span as a difference of timestamps.</summary>
    public long Of(TimeSpan span) => (long)(span.TotalMilliseconds * _perMs);

    /// <summary>The moment after a span from now on; the last one there is when it is further away.</summary>
    public long After(TimeSpan span) => Later(Now, Of(span));

    /// <summary>The moment so much later than another one; the last one there is when it is further away.</summary>
    public static long Later(long moment, long difference) => difference > long.MaxValue - moment ? long.MaxValue : moment + difference;

    /// <summary>A span in whole milliseconds, rounded away from zero.</summary>
    public static long WholeMs(TimeSpan span)
    {
        (long wholeMs, long rest) = Math.DivRem(span.Ticks, TimeSpan.TicksPerMillisecond);
        return wholeMs + Math.Sign(rest);
    }

    /// <summary>Milliseconds as a difference of timestamps.</summary>
    public long OfMs(long ms) => ms * _perMs;

    /// <summary>A difference of timestamps in whole milliseconds, what is left over being dropped.</summary>
    public long Ms(long difference) => difference / _perMs;

    /// <summary>A difference of timestamps as a span.</summary>
    public TimeSpan Span(long difference) => TimeSpan.FromMilliseconds((double)difference / _perMs);

    /// <summary>A remaining time as the wire's wait limit, where 0 would mean none.</summary>
    public uint WaitMs(long remaining) => (uint)Math.Clamp(remaining / _perMs, 1, Limits.CommandWaitMsMax);
}
