using Kahuna.Client.Connection;

namespace Kahuna.Client.Locks;

/// <summary>When an acquire has to be over; in ticks of the connection's clock.</summary>
internal readonly struct AcquireLimits
{
    private readonly ConnectionClock _clock;
    private readonly long _limit;

    /// <param name="clock">The connection's clock; the acquire begins now.</param>
    /// <param name="wait">For how long the caller waits for the lock; null: not at all.</param>
    /// <param name="requestTimeout">How long a request may take.</param>
    public AcquireLimits(ConnectionClock clock, TimeSpan? wait, long requestTimeout)
    {
        _clock = clock;
        Begun = clock.Now;
        Until = ConnectionClock.Later(Begun, clock.Of(wait ?? default));
        _limit = ConnectionClock.Later(Until, requestTimeout);
    }

    public long Begun { get; }

    /// <summary>Until then the caller waits for the lock.</summary>
    public long Until { get; }

    /// <summary>What is left of the wait and of the one request timeout after it; never negative.</summary>
    public TimeSpan Left => _clock.Span(Math.Max(0, _limit - _clock.Now));

    /// <summary>Nothing is left.</summary>
    public bool IsOver => _limit <= _clock.Now;
}
