using System.Globalization;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// What the ephemeral keys of a node take up, states and logs together, and how much they may. Each partition says what
/// is its part; any thread.
/// </summary>
/// <param name="bytesMax">At this size writes that may take up more are refused.</param>
/// <param name="evicts">Before that, keys that were not used for long go.</param>
/// <param name="reserve">
/// So much is kept free for what comes while others go; null: a sixteenth, and a few slabs at least.
/// </param>
internal sealed class EphemeralMemory(long bytesMax, bool evicts = false, long? reserve = null)
{
    /// <summary>A few slabs: what is free in one of them may be of no use for values of another size.</summary>
    private const long ReserveMin = 3 << 20;

    /// <summary>
    /// The part of the limit that the logs of all groups may take up for members that keep up, and for such as do not
    /// or are being restored.
    /// </summary>
    private const int LogCacheShare = 8;
    private const int LogShare = 4;

    /// <summary>A group's log in memory is never made smaller than a large entry.</summary>
    private const int LogBytesMin = 512 << 10;

    private readonly long _reserve = reserve ?? Math.Max(bytesMax / 16, ReserveMin);

    private long _bytes;
    private long _free;
    private long _evictable;

    /// <summary>Bytes as of the partitions' last ticks.</summary>
    public long Bytes => Interlocked.Read(ref _bytes);

    /// <summary>Keys go when there is no room.</summary>
    public bool Evicts => evicts;

    /// <summary>Room is short: what can be forgotten early should be.</summary>
    public bool IsPressed => Bytes >= bytesMax - _reserve;

    /// <summary>
    /// Bytes that should go now. What goes leaves its room inside of slabs, where others take its place; so what is
    /// kept free counts, and not what is in use alone.
    /// </summary>
    private long BytesToEvict
    {
        get
        {
            long bytes = Bytes;
            if (!evicts || bytes < bytesMax - (3 * _reserve))
            {
                return 0;
            }

            // Twice as much when nearly everything is in use, because part of it may be of no use for the sizes that
            // come.
            long wanted = (bytes >= bytesMax - (2 * _reserve) ? 2 * _reserve : _reserve) - Interlocked.Read(ref _free);

            // In use up to the limit, however much of it lies free: that serves none of the sizes that come, and is had
            // back only with the keys beside it.
            long useless = bytes >= bytesMax - (_reserve / 2) ? _reserve / 2 : 0;
            return Math.Max(0, Math.Max(wanted, useless));
        }
    }

    /// <summary>A group's part of <see cref="BytesToEvict"/>: as large as its part of all that can go.</summary>
    public long ShareToEvict(long evictable)
    {
        long bytes = BytesToEvict;
        return bytes == 0 || evictable == 0
            ? 0 : (long)((double)bytes * evictable / Math.Max(evictable, Interlocked.Read(ref _evictable))) + 1;
    }

    /// <summary>
    /// What a group's log may take up in memory so that all logs together stay a small part of the limit.
    /// </summary>
    public RaftLimits LimitLog(RaftLimits limits, int groups) => limits with
    {
        CacheBytes = (int)Math.Min(limits.CacheBytes, Math.Max(LogBytesMin, bytesMax / LogCacheShare / groups)),
        CacheBytesMax = (int)Math.Min(limits.CacheBytesMax, Math.Max(LogBytesMin, bytesMax / LogShare / groups)),
    };

    /// <summary>
    /// What a group's log may take up in memory while a member is being restored, which needs what was written since
    /// the state that it gets. Where room is short that is no more than for any other member: a slow one must not keep
    /// the others from writing.
    /// </summary>
    /// <param name="limits">The group's limits (<see cref="LimitLog"/>).</param>
    /// <param name="groups">Number of groups.</param>
    public long HeldLogBytes(RaftLimits limits, int groups) =>
        IsPressed ? limits.CacheBytesMax : Math.Max(limits.CacheBytesMax, bytesMax / LogShare / groups);

    /// <summary>Why a write that may take up more is refused, or null.</summary>
    /// <param name="pendingBytes">Bytes of writes that are accepted and not applied yet.</param>
    public string? RefuseWrites(long pendingBytes) => !IsFull(pendingBytes)
        ? null
        : string.Create(CultureInfo.InvariantCulture,
            $"The node's memory for ephemeral keys has reached its limit of {bytesMax:N0} bytes (--ephemeral-limit); "
                + $"nothing was changed. "
                + $"{(evicts ? "Keys are being evicted; try again." : "Delete keys, or let them expire.")}");

    /// <summary>Where keys may be evicted, it is noted from now on which of them are used.</summary>
    public void Track(StateMachine state)
    {
        if (evicts)
        {
            state.TrackUses();
        }
    }

    /// <summary>A partition's part has grown or shrunk, and what lies free in it, and what of it can go.</summary>
    public void Changed(long bytes, long free, long evictable)
    {
        InvariantException.Require(Interlocked.Add(ref _bytes, bytes) >= 0, "no group gives back more than it took");
        Interlocked.Add(ref _free, free);
        Interlocked.Add(ref _evictable, evictable);
    }

    private bool IsFull(long pendingBytes)
    {
        long bytes = Bytes;
        return bytes >= bytesMax - pendingBytes
            || (evicts && bytes >= bytesMax - _reserve && Interlocked.Read(ref _free) < _reserve / 2);
    }
}
