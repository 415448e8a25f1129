namespace Kahuna.Server.Storage.Disk;

/// <summary>
/// Port: the disk as the log sees it. Paths are whole paths. Errors are <see cref="DiskException"/> with the system's number;
/// no error of a sync is ever swallowed. Any thread.
/// </summary>
internal interface IDisk
{
    /// <summary>Makes a directory and those above it that are missing, each entry synced; that of a directory that is there is synced again.</summary>
    void CreateDirectory(string path);

    /// <summary>Names (not paths) of the files in a directory, in no order.</summary>
    IReadOnlyList<string> List(string directory);

    /// <summary>Opens a file for reading and writing. A created file's name is stable only after <see cref="SyncDirectory"/>.</summary>
    IDiskFile Open(string path, DiskFileMode mode);

    /// <summary>Gives a file another name in the same directory, replacing what had it. Stable only after <see cref="SyncDirectory"/>.</summary>
    void Rename(string from, string to);

    /// <summary>Removes a file's name. Stable only after <see cref="SyncDirectory"/>.</summary>
    void Delete(string path);

    /// <summary>Brings a directory's names to stable storage.</summary>
    void SyncDirectory(string path);

    /// <summary>Room on the disk that holds this directory.</summary>
    DiskSpace Space(string directory);

    /// <summary>Whether files of this directory can be read past the system's page cache; not every file system lets them. Tried with a file, which is removed.</summary>
    bool CanReadDirectly(string directory) => false;

    /// <summary>Takes a lock on a file (made when missing) against everybody else; null when somebody holds it, also after a moment's wait. Disposal, or the end of the process, frees it.</summary>
    IDisposable? TryLock(string path);
}
