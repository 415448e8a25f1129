using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>
/// Token bucket: admits work while the balance of bytes per second is not negative. Owned by one thread.
/// </summary>
internal sealed class RateLimiter(long bytesPerSecond)
{
    /// <summary>What may be caught up after a pause: a fifth of a second's work, so that no burst shows.</summary>
    private readonly double _creditMax = bytesPerSecond / 5.0;

    private double _credit;
    private long _countedMs;

    /// <summary>
    /// When work may begin, in ms of the clock whose time is <paramref name="nowMs"/>; not later than that when it may
    /// now.
    /// </summary>
    public long ReadyMs(long nowMs)
    {
        _credit = Math.Min(_creditMax, _credit + ((nowMs - _countedMs) * bytesPerSecond / 1000.0));
        _countedMs = nowMs;
        return _credit >= 0 ? nowMs : nowMs + 1 + (long)(-_credit * 1000 / bytesPerSecond);
    }

    /// <summary>Work was done; the balance may become negative.</summary>
    public void Charge(long bytes)
    {
        InvariantException.Require(bytes >= 0, "work costs credit");
        _credit -= bytes;
    }
}
