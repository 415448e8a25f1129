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
    private NodeTime _countedAt;

    /// <summary>When work may begin; not later than <paramref name="now"/> when it may now.</summary>
    public NodeTime ReadyAt(NodeTime now)
    {
        _credit = Math.Min(_creditMax, _credit + ((now - _countedAt) * bytesPerSecond / 1000.0));
        _countedAt = now;
        return _credit >= 0 ? now : now + 1 + (long)(-_credit * 1000 / bytesPerSecond);
    }

    /// <summary>Work was done; the balance may become negative.</summary>
    public void Charge(long bytes)
    {
        InvariantException.Require(bytes >= 0, "work costs credit");
        _credit -= bytes;
    }

    /// <summary>No more than this is owed.</summary>
    public void ForgiveBeyond(long bytes) => _credit = Math.Max(_credit, -bytes);
}
