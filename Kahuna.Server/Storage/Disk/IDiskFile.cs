namespace Kahuna.Server.Storage.Disk;

/// <summary>Port: an open file. Reads may run beside each other and beside one writer; owned by whoever opened it.</summary>
internal interface IDiskFile : IDisposable
{
    string Path { get; }

    /// <summary>Bytes in the file.</summary>
    long Length { get; }

    /// <summary>Reads from <paramref name="offset"/> on until the target is full or the file ends; returns the bytes read.</summary>
    int Read(long offset, Span<byte> target);

    /// <summary>Writes all parts one after the other from <paramref name="offset"/> on; grows the file when needed. Stable only after <see cref="SyncData"/>.</summary>
    void Write(long offset, ReadOnlySpan<ReadOnlyMemory<byte>> parts);

    /// <summary>Brings everything written, and the length, to stable storage. After an error nothing is known about what was written: do not try again.</summary>
    void SyncData();
}
