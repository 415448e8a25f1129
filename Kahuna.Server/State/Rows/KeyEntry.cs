namespace Kahuna.Server.State.Rows;

/// <summary>
/// One key that was ever written: 48 bytes. A deleted key keeps its row, because its revisions go on where they
/// stopped. A row of <see cref="KeyTable"/>, owned by it.
/// </summary>
internal struct KeyEntry
{
    /// <summary>Revision of the last write, deletions included.</summary>
    public long Revision;

    /// <summary>Digest of the last write (<see cref="StateDigest.OfRevision"/>).</summary>
    public ulong Digest;

    /// <summary>Lower half of the key's hash; saves most comparisons of bytes.</summary>
    public uint Hash;

    /// <summary>Next row of the same hash bucket; 0 ends the chain.</summary>
    public int Next;

    /// <summary>The block that holds the key's bytes and then the value's.</summary>
    public uint Block;

    public int ValueLength;

    /// <summary>Place in the expiry heap; 0 when the key does not expire.</summary>
    public int ExpirySlot;

    /// <summary>Newest replaced revision in the history table; 0 when none is kept.</summary>
    public int NewestHistory;

    public int HistoryCount;

    public ushort KeyLength;

    public KeyEntryFlags Flags;

    /// <summary>The key is deleted; only its name and revision are kept.</summary>
    public readonly bool IsDeleted => (Flags & KeyEntryFlags.Deleted) != 0;

    /// <summary>The value is null, not empty.</summary>
    public readonly bool IsNull => (Flags & KeyEntryFlags.Null) != 0;

    /// <summary>The row stands for nothing.</summary>
    public readonly bool IsFree => (Flags & KeyEntryFlags.Free) != 0;

    /// <summary>The row is a client session.</summary>
    public readonly bool IsSession => (Flags & KeyEntryFlags.Session) != 0;

    /// <summary>The row is a claim for a lock.</summary>
    public readonly bool IsClaim => (Flags & KeyEntryFlags.Claim) != 0;

    /// <summary>The row is a claim that holds its lock.</summary>
    public readonly bool IsHeld => (Flags & KeyEntryFlags.Held) != 0;

    /// <summary>Length for which <see cref="Block"/> was allocated.</summary>
    public readonly int BlockLength => KeyLength + ValueLength;
}
