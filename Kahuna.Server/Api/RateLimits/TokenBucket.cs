using Kahuna.Server.Primitives;

namespace Kahuna.Server.Api.RateLimits;

/// <summary>A token bucket, initially full. Guarded by its owner's lock; not thread-safe.</summary>
/// <param name="rate">Capacity and fill rate.</param>
/// <param name="now">When it is made.</param>
internal sealed class TokenBucket(RateLimit rate, NodeTime now)
{
    private const double MsPerSecond = 1000;

    private double _tokens = rate.Burst;
    private NodeTime _filledAt = now;

    public RateLimit Rate => rate;

    /// <summary>Takes one token; false if there is none.</summary>
    public bool TryTake(NodeTime now)
    {
        Fill(now);
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
    public bool IsFull(NodeTime now)
    {
        Fill(now);
        return _tokens >= rate.Burst;
    }

    private void Fill(NodeTime now)
    {
        if (now > _filledAt)
        {
            _tokens = Math.Min(rate.Burst, _tokens + ((now - _filledAt) * rate.PerSecond / MsPerSecond));
            _filledAt = now;
        }
    }
}
