namespace Kahuna.Server.State.Rows;

/// <summary>One replaced revision of a key: 64 bytes. A row of <see cref="HistoryTable"/>, owned by it.</summary>
internal struct HistoryRecord
{
    public long Revision;

    /// <summary>Cluster time at which it was replaced.</summary>
    public long ReplacedAtMs;

    /// <summary>
    /// Place in the order of replacement over all keys of the partition, from 1 on; the same on every node.
    /// </summary>
    public long Number;

    /// <summary>Digest of the revision, taken over from the key's row.</summary>
    public ulong Digest;

    /// <summary>Row of the key.</summary>
    public int Key;

    /// <summary>The block that holds the key's bytes and then this revision's value; none for a deletion.</summary>
    public uint Block;

    public int ValueLength;

    /// <summary>The key's next newer record; the newest one names the oldest here, which closes the ring.</summary>
    public int Newer;

    /// <summary>
    /// The key's next older record; the oldest one names the newest. In an unused row: the next unused row.
    /// </summary>
    public int Older;

    /// <summary>The record of any key that was replaced next; 0 at the end.</summary>
    public int Later;

    /// <summary>The record of any key that was replaced before; 0 at the start.</summary>
    public int Earlier;

    public KeyEntryFlags Flags;
}
