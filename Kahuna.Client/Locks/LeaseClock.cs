using Kahuna.Client.Connection;

namespace Kahuna.Client.Locks;

/// <summary>
/// When moments of the cluster's clock are, by this machine's monotonic clock: never later than they really come.
/// Cluster time may stand still, as during a change of leader, and never runs faster than real time by the leader's
/// clock, which counts at most 1 % more than this one. So of a reply that tells the cluster time T to a request that was
/// sent at S, it is known that a later moment E of cluster time is not before S + 0.99 (E - T). Each reply gives such a
/// bound, and the latest is the best. A local clock that is faster than the leader's only makes bounds of older replies
/// earlier than they could be. A moment that a reply told to be over already comes out as over. One caller at a time.
/// </summary>
internal sealed class LeaseClock(ConnectionClock clock)
{
    /// <summary>The local clock is slower than the leader's by at most one part in this many: 1 %.</summary>
    public const long RateParts = 100;

    private long _offset = long.MinValue;

    /// <summary>A reply told the cluster's time.</summary>
    /// <param name="sent">When its request was sent for the first time, on the local timestamp scale.</param>
    /// <param name="clusterMs">What the cluster's clock showed at some moment after that, and not before.</param>
    public void Heard(long sent, long clusterMs) => _offset = Math.Max(_offset, sent - Least(clusterMs));

    /// <summary>
    /// A moment of cluster time as a local timestamp, or an earlier one; before the first reply it is long ago.
    /// </summary>
    public long At(long clusterMs) => _offset == long.MinValue ? long.MinValue : _offset + Least(clusterMs);

    /// <summary>
    /// How much the local clock counts while the cluster's counts so much, at least. One slope for all bounds, so that
    /// the one with the greatest offset is the latest for every moment.
    /// </summary>
    private long Least(long clusterMs)
    {
        long whole = clock.OfMs(clusterMs);
        return whole - (whole / RateParts);
    }
}
