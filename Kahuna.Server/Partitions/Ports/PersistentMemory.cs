using System.Globalization;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// What the persistent data of a node takes up in memory, and how much it may. Each partition says what is its part;
/// any thread.
/// </summary>
/// <param name="bytesMax">At this size leaders of this node refuse writes that may take up more.</param>
internal sealed class PersistentMemory(long bytesMax)
{
    /// <summary>
    /// The part of the limit that what lies free inside of slabs may add to it: other sizes than those that come may
    /// have left it.
    /// </summary>
    private const int FreeShare = 4;

    private long _bytes;
    private long _free;

    /// <summary>Bytes as of the partitions' last ticks.</summary>
    public long Bytes => Interlocked.Read(ref _bytes);

    /// <summary>Why a write that may take up more is refused, or null.</summary>
    /// <param name="pendingBytes">
    /// Bytes of writes of the asking partition that are accepted and not applied yet.
    /// </param>
    public string? RefuseWrites(long pendingBytes)
    {
        long bytes = Bytes;
        bool isFull = bytes - Interlocked.Read(ref _free) >= bytesMax - pendingBytes
            || bytes - (bytesMax / FreeShare) >= bytesMax;
        return !isFull
            ? null
            : string.Create(CultureInfo.InvariantCulture,
                $"The node's memory for persistent data has reached its limit of {bytesMax:N0} bytes "
                    + $"(--persistent-limit); nothing was changed. Delete keys, or let them expire: their memory is "
                    + $"free once their history has passed.");
    }

    /// <summary>A partition's part has grown or shrunk, and what lies free in it.</summary>
    public void Changed(long bytes, long free)
    {
        InvariantException.Require(Interlocked.Add(ref _bytes, bytes) >= 0, "no group gives back more than it took");
        Interlocked.Add(ref _free, free);
    }
}
