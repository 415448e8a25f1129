namespace Kahuna.Server.Api.Openings;

/// <summary>A token bucket, full at first. Owned by whoever holds its lock; not thread-safe.</summary>
/// <param name="rate">What it holds, and how fast it fills.</param>
/// <param name="nowMs">Monotonic time.</param>
internal sealed class TokenBucket(OpeningRate rate, long nowMs)
{
    private const double MsPerSecond = 1000;

    private double _tokens = rate.Burst;
    private long _filledMs = nowMs;

    public OpeningRate Rate => rate;

    /// <summary>Takes one token; false when there is none.</summary>
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

    /// <summary>Gives a token back that was taken.</summary>
    public void GiveBack() => _tokens = Math.Min(rate.Burst, _tokens + 1);

    /// <summary>Nothing is missing: it is as good as a new one.</summary>
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
