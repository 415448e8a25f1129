namespace Kahuna.Server.Storage.Disk;

/// <summary>How to open a file.</summary>
internal enum DiskFileMode
{
    /// <summary>The file must exist; its content stays.</summary>
    Existing,

    /// <summary>The file is created, or emptied if it exists.</summary>
    Empty,

    /// <summary>
    /// The file must exist; each write goes on where the last one ended, and goes past the system's page cache where it
    /// can. What is behind the written bytes, in a block of 4,096 bytes that they share, may become zero.
    /// </summary>
    Appended,
}

/// <summary>Space on a disk, in bytes. <paramref name="Free"/> is what this process may still use.</summary>
internal readonly record struct DiskSpace(long Free, long Total);

/// <summary>
/// Port: the disk as the log uses it. Paths are absolute. Errors are <see cref="DiskException"/> with the system's
/// number; no sync error is ever swallowed. Any thread.
/// </summary>
internal interface IDisk
{
    /// <summary>
    /// Creates a directory and its missing parents, and syncs each new name. The name of an existing directory is
    /// synced again.
    /// </summary>
    void CreateDirectory(string path);

    /// <summary>Names (not paths) of the files in a directory, in no particular order.</summary>
    IReadOnlyList<string> List(string directory);

    /// <summary>
    /// Opens a file for reading and writing. The name of a new file is stable only after <see cref="SyncDirectory"/>.
    /// </summary>
    IDiskFile Open(string path, DiskFileMode mode);

    /// <summary>
    /// Renames a file within its directory, replacing an existing one. Stable only after <see cref="SyncDirectory"/>.
    /// </summary>
    void Rename(string from, string to);

    /// <summary>Removes a file's name. Stable only after <see cref="SyncDirectory"/>.</summary>
    void Delete(string path);

    /// <summary>Brings the names in a directory to stable storage.</summary>
    void SyncDirectory(string path);

    /// <summary>Space on the disk that holds this directory.</summary>
    DiskSpace Space(string directory);

    /// <summary>
    /// Whether files in this directory can be read past the system's page cache, which not every file system allows.
    /// Tried with a temporary file.
    /// </summary>
    bool CanReadDirectly(string directory) => false;

    /// <summary>
    /// Locks a file exclusively, creating it if missing. Null when it is still locked after a short wait. Disposal, or
    /// the end of the process, releases the lock.
    /// </summary>
    IDisposable? TryLock(string path);
}

/// <summary>
/// Port: an open file. Reads may run concurrently with each other and with one writer. Owned by the caller that opened
/// it.
/// </summary>
internal interface IDiskFile : IDisposable
{
    string Path { get; }

    /// <summary>Bytes in the file.</summary>
    long Length { get; }

    /// <summary>
    /// Reads from <paramref name="offset"/> on until the target is full or the file ends. Returns the bytes read.
    /// </summary>
    int Read(long offset, Span<byte> target);

    /// <summary>
    /// Writes all parts in order from <paramref name="offset"/> on, and grows the file if needed. Stable only after
    /// <see cref="SyncData"/>.
    /// </summary>
    void Write(long offset, ReadOnlySpan<ReadOnlyMemory<byte>> parts);

    /// <summary>
    /// Brings everything written, and the length, to stable storage. After an error the state of the written data is
    /// unknown: do not retry.
    /// </summary>
    void SyncData();
}
