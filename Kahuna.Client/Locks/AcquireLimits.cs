using Kahuna.Client.Connection;

namespace Kahuna.Client.Locks;

/// <summary>The deadlines of one acquire, in ticks of the connection's clock. A value.</summary>
internal readonly struct AcquireLimits
{
    private readonly ConnectionClock _clock;
    private readonly long _limit;

    /// <param name="clock">The connection's clock; the acquire starts now.</param>
    /// <param name="wait">How long the caller waits for the lock; null not to wait.</param>
    /// <param name="requestTimeout">The duration limit of one request.</param>
    public AcquireLimits(ConnectionClock clock, TimeSpan? wait, long requestTimeout)
    {
        _clock = clock;
        Begun = clock.Now;
        Until = ConnectionClock.Later(Begun, clock.Of(wait ?? default));
        _limit = ConnectionClock.Later(Until, requestTimeout);
    }

    public long Begun { get; }

    /// <summary>Until when the caller waits for the lock.</summary>
    public long Until { get; }

    /// <summary>The rest of the wait plus one request timeout; never negative.</summary>
    public TimeSpan Left => LeftAt(_clock.Now);

    /// <summary>What <see cref="Left"/> is at a moment.</summary>
    public TimeSpan LeftAt(long moment) => _clock.Span(Math.Max(0, _limit - moment));

    /// <summary>True when nothing is left.</summary>
    public bool IsOver => _limit <= _clock.Now;
}
