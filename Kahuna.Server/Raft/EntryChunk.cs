namespace Kahuna.Server.Raft;

/// <summary>A block of bytes that encoded entries lie in, one after the other. Owned by one <see cref="EntryMemory"/>.</summary>
internal sealed class EntryChunk(byte[] bytes, bool single)
{
    public byte[] Bytes { get; } = bytes;

    /// <summary>The block holds one large entry and belongs to the shared array pool.</summary>
    public bool Single { get; } = single;

    /// <summary>Bytes written, from the start.</summary>
    public int Used { get; set; }

    /// <summary>Entries in it that are still in memory.</summary>
    public int Entries { get; set; }
}
