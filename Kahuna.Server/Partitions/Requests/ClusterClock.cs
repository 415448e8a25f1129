namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// Cluster time of one partition as its leader counts it: it continues from the last stamp that the state holds and
/// advances with the leader's monotonic clock, so it never goes back and a lease never ends early. Owned by a
/// partition.
/// </summary>
internal struct ClusterClock
{
    private long _stampMs;
    private long _anchorMs;

    /// <summary>A new leader has applied everything of earlier terms: continue from there.</summary>
    public void Anchor(long stateTimeMs, long monotonicMs)
    {
        _stampMs = stateTimeMs;
        _anchorMs = monotonicMs;
    }

    /// <summary>The time now.</summary>
    public readonly long At(long monotonicMs) => _stampMs + Math.Max(0, monotonicMs - _anchorMs);
}
