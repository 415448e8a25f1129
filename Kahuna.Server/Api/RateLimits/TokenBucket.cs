namespace Kahuna.Server.Api.RateLimits;

/// <summary>A token bucket, initially full. Guarded by its owner's lock; not thread-safe.</summary>
/// <param name="rate">Capacity and fill rate.</param>
/// <param name="nowMs">Monotonic time.</param>
internal sealed class TokenBucket(RateLimit rate, long nowMs)
{
    private const double MsPerSecond = 1000;

    private double _tokens = rate.Burst;
    private long _filledMs = nowMs;

    public RateLimit Rate => rate;

    /// <summary>Takes one token; false if there is none.</summary>
    public bool TryTake(long nowMs)
    {
        Fill(nowMs);
        if (_tokens < 1)
        {
            return false;
        }

        _tokens--;
        return true;
    }

    /// <summary>Returns one token.</summary>
    public void GiveBack() => _tokens = Math.Min(rate.Burst, _tokens + 1);

    /// <summary>True if the bucket is full, and so no different from a new one.</summary>
    public bool IsFull(long nowMs)
    {
        Fill(nowMs);
        return _tokens >= rate.Burst;
    }

    private void Fill(long nowMs)
    {
        if (nowMs > _filledMs)
        {
            _tokens = Math.Min(rate.Burst, _tokens + ((nowMs - _filledMs) * rate.PerSecond / MsPerSecond));
            _filledMs = nowMs;
        }
    }
}
