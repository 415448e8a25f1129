using System.Globalization;

namespace Kahuna.Server.Partitions.Ephemeral;

/// <summary>What the ephemeral keys of a node take up, states and logs together, and how much they may. Each partition says what is its part; any thread.</summary>
/// <param name="bytesMax">At this size writes that may take up more are refused.</param>
/// <param name="evicts">Before that, keys that were not used for long go.</param>
/// <param name="reserve">So much is kept free for what comes while others go; null: a sixteenth, and a few slabs at least.</param>
internal sealed class EphemeralMemory(long bytesMax, bool evicts = false, long? reserve = null)
{
    /// <summary>A few slabs: what is free in one of them may be of no use for values of another size.</summary>
    private const long ReserveMin = 3 << 20;

    private readonly long _reserve = reserve ?? Math.Max(bytesMax / 16, ReserveMin);

    private long _bytes;
    private long _free;

    /// <summary>Bytes as of the partitions' last ticks.</summary>
    public long Bytes => Interlocked.Read(ref _bytes);

    /// <summary>Keys go when there is no room.</summary>
    public bool Evicts => evicts;

    /// <summary>
    /// Bytes whose keys should go now. What goes leaves its room inside of slabs, where others take its place; so what is kept free counts, and not what is in use alone: twice as much when nearly everything
    /// is in use, because part of it may be of no use for the sizes that come.
    /// </summary>
    public long BytesToEvict
    {
        get
        {
            long bytes = Bytes;
            return !evicts || bytes < bytesMax - (3 * _reserve)
                ? 0
                : Math.Max(0, (bytes >= bytesMax - (2 * _reserve) ? 2 * _reserve : _reserve) - Interlocked.Read(ref _free));
        }
    }

    /// <summary>Why a write that may take up more is refused, or null.</summary>
    public string? RefuseWrites => !IsFull
        ? null
        : string.Create(CultureInfo.InvariantCulture, $"The node's memory for ephemeral keys has reached its limit of {bytesMax:N0} bytes (--ephemeral-limit); nothing was changed. {(evicts ? "Keys are being evicted; try again." : "Delete keys, or let them expire.")}");

    private bool IsFull
    {
        get
        {
            long bytes = Bytes;
            return bytes >= bytesMax || (evicts && bytes >= bytesMax - _reserve && Interlocked.Read(ref _free) < _reserve / 2);
        }
    }

    /// <summary>A partition's part has grown or shrunk, and what lies free in it.</summary>
    public void Changed(long bytes, long free)
    {
        Interlocked.Add(ref _bytes, bytes);
        Interlocked.Add(ref _free, free);
    }
}
