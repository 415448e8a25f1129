using Kahuna.Client.Connection;

namespace Kahuna.Client.Locks;

/// <summary>
/// Maps cluster time to this machine's monotonic clock: the result is never later than the real moment. One caller at a
/// time.
/// <para>
/// Cluster time may stop, as during a change of leader. It never runs faster than the leader's clock, which counts at
/// most 1 % more than this one. So if a reply tells cluster time T to a request sent at S, a later cluster time E is
/// not before S + 0.99 (E - T). Each reply gives such a bound, and the latest bound is the best. If the local clock is
/// faster than the leader's, bounds of older replies are merely earlier than necessary. A moment that had passed when
/// the reply was sent maps to the past.
/// </para>
/// </summary>
internal sealed class LeaseClock(ConnectionClock clock)
{
    /// <summary>The local clock may be slower than the leader's by one part in this many: 1 %.</summary>
    public const long RateParts = 100;

    private long _offset = long.MinValue;

    /// <summary>Takes the cluster time that a reply tells.</summary>
    /// <param name="sent">When its request was first sent, on the local timestamp scale.</param>
    /// <param name="clusterMs">Cluster time at some moment after that.</param>
    public void Heard(long sent, long clusterMs) => _offset = Math.Max(_offset, sent - Least(clusterMs));

    /// <summary>
    /// The local timestamp of a cluster time, or an earlier one; far in the past before the first reply.
    /// </summary>
    public long At(long clusterMs) => _offset == long.MinValue ? long.MinValue : _offset + Least(clusterMs);

    /// <summary>
    /// The least local time that passes while cluster time advances by a span. All bounds have this slope, so the one
    /// with the greatest offset is the latest for every moment.
    /// </summary>
    private long Least(long clusterMs)
    {
        long whole = clock.OfMs(clusterMs);
        return whole - (whole / RateParts);
    }
}
