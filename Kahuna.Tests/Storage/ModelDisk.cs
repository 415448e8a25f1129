using Kahuna.Server.Storage.Disk;

namespace Kahuna.Tests.Storage;

/// <summary>
/// A disk in memory that forgets, at a crash, what was not synced: data per sector of 512 bytes, names per directory in
/// the order of their changes. A sync that fails drops what it should have made stable, as Linux does: it stays
/// readable until the crash, and no later sync brings it back. Single-threaded; deterministic given its random numbers.
/// </summary>
internal sealed class ModelDisk : IDisk
{
    private readonly Dictionary<string, ModelInode> _names = [];
    private readonly Dictionary<string, ModelInode> _stableNames = [];
    private readonly List<NameChange> _unsyncedNames = [];
    private readonly HashSet<string> _directories = [];
    private readonly HashSet<string> _locks = [];
    private readonly UnsyncedFiles _unsynced = new();

    /// <summary>Size of the disk; writes that would make files grow beyond it fail with ENOSPC.</summary>
    public long Capacity { get; set; } = long.MaxValue / 2;

    /// <summary>
    /// Decides, before each operation, whether it fails: 0 or an error number. The number of bytes is that of a write.
    /// </summary>
    public Func<DiskStep, string, int>? Fault { get; set; }

    /// <summary>Syncs of files that succeeded.</summary>
    public int Syncs { get; private set; }

    /// <summary>Counts up at each crash or kill; older handles are dead.</summary>
    public int Life { get; private set; }

    /// <summary>Bytes were written to some file below a directory and not synced.</summary>
    public bool HasUnsynced(string directory) =>
        _unsynced.Count > 0
            && _names.Any(
                entry => entry.Value.HasUnsynced && entry.Key.StartsWith(directory, StringComparison.Ordinal));

    /// <summary>Bytes that were written to a file and not synced.</summary>
    public int Unsynced(string path) => _names.TryGetValue(path, out ModelInode? inode) ? inode.Unsynced : 0;

    public long Used
    {
        get
        {
            // Asked at every write that makes a file longer.
            long used = 0;
            foreach (ModelInode inode in _names.Values)
            {
                used += inode.Length;
            }

            return used;
        }
    }

    /// <summary>Paths of all files.</summary>
    public IEnumerable<string> Files => _names.Keys.Order(StringComparer.Ordinal);

    /// <summary>
    /// The power fails: un-synced data survives per sector, and un-synced names up to some change, as the random
    /// numbers say; nothing of either without them.
    /// </summary>
    public void Crash(Random? random = null)
    {
        Kill();
        int survivors = random?.Next(_unsyncedNames.Count + 1) ?? 0;
        foreach (NameChange change in _unsyncedNames.Take(survivors))
        {
            change.Apply(_stableNames);
        }

        _unsyncedNames.Clear();
        _names.Clear();
        foreach ((string path, ModelInode inode) in _stableNames)
        {
            _names[path] = inode;
        }

        foreach (ModelInode inode in _names.Values.Distinct())
        {
            inode.Crash(random);
        }

        // A file without a name is gone.
        _unsynced.Count = 0;
    }

    /// <summary>The process is killed: everything written stays readable, handles and locks are gone.</summary>
    public void Kill()
    {
        Life++;
        _locks.Clear();
    }

    /// <summary>A file's content; changes of it are on stable storage at once, as a flipped bit is.</summary>
    public void Change(string path, Action<byte[]> change)
    {
        ModelInode inode = _names[path];
        change(inode.Current);
        inode.SyncAll();
    }

    /// <summary>Shortens a file on stable storage.</summary>
    public void Cut(string path, int length) => _names[path].Cut(length);

    public byte[] Content(string path) => [.. _names[path].Current.AsSpan(0, _names[path].Length)];

    /// <summary>A disk with the same content, all of it stable.</summary>
    public ModelDisk Copy()
    {
        ModelDisk copy = new();
        copy._directories.UnionWith(_directories);
        foreach ((string path, ModelInode inode) in _names)
        {
            copy._names[path] = copy._stableNames[path] = inode.Copy(copy._unsynced);
        }

        return copy;
    }

    public void CreateDirectory(string path) => _directories.Add(path);

    public IReadOnlyList<string> List(string directory) =>
        [.. _names.Keys.Where(path => IsIn(path, directory)).Select(path => path[(directory.Length + 1)..])];

    public IDiskFile Open(string path, DiskFileMode mode)
    {
        Check(DiskStep.Open, "opening", path);
        if (mode == DiskFileMode.Empty)
        {
            // A new inode stands for the emptied file too: what the old one held may come back at a crash, as on a real
            // disk.
            ChangeName(new NameChange(path, new ModelInode(_unsynced)));
        }

        return _names.TryGetValue(path, out ModelInode? inode)
            ? new ModelFile(this, path, inode, Life)
            : throw new DiskException("opening", path, 2);
    }

    public void Rename(string from, string to)
    {
        Check(DiskStep.Rename, "renaming", from);
        ModelInode inode = _names.TryGetValue(from, out ModelInode? found)
            ? found
            : throw new DiskException("renaming", from, 2);
        ChangeName(new NameChange(to, inode) { Removed = from });
    }

    public void Delete(string path)
    {
        Check(DiskStep.Delete, "deleting", path);
        if (_names.ContainsKey(path))
        {
            ChangeName(new NameChange(path, null));
        }
    }

    public void SyncDirectory(string path)
    {
        Check(DiskStep.SyncDirectory, "syncing directory", path);
        foreach (NameChange change in _unsyncedNames.Where(change => IsIn(change.Path, path)))
        {
            change.Apply(_stableNames);
        }

        _unsyncedNames.RemoveAll(change => IsIn(change.Path, path));
    }

    public DiskSpace Space(string directory) => new(Capacity - Used, Capacity);

    public IDisposable? TryLock(string path)
    {
        _names.TryAdd(path, new ModelInode(_unsynced));
        _stableNames.TryAdd(path, _names[path]);
        return _locks.Add(path) ? new HeldLock(this, path, Life) : null;
    }

    internal void Check(DiskStep step, string words, string path)
    {
        int error = Fault?.Invoke(step, path) ?? 0;
        if (error != 0)
        {
            throw new DiskException(words, path, error);
        }
    }

    internal void CheckRoom(string path, long growth)
    {
        if (growth > 0 && Capacity < long.MaxValue / 2 && Used + growth > Capacity)
        {
            throw new DiskException("writing", path, DiskException.NoSpaceLeft);
        }
    }

    internal void CountSync() => Syncs++;

    private static bool IsIn(string path, string directory) =>
        path.Length > directory.Length
            && path[directory.Length] == '/'
            && path.StartsWith(directory, StringComparison.Ordinal)
            && path.AsSpan(directory.Length + 1).IndexOf('/') < 0;

    private void ChangeName(NameChange change)
    {
        change.Apply(_names);
        _unsyncedNames.Add(change);
    }

    /// <summary>A name that is given to a file or (null) taken away.</summary>
    private sealed record NameChange(string Path, ModelInode? Inode)
    {
        public string? Removed { get; init; }

        public void Apply(Dictionary<string, ModelInode> names)
        {
            if (Removed is not null)
            {
                names.Remove(Removed);
            }

            if (Inode is null)
            {
                names.Remove(Path);
            }
            else
            {
                names[Path] = Inode;
            }
        }
    }

    private sealed class HeldLock(ModelDisk disk, string path, int life) : IDisposable
    {
        public void Dispose()
        {
            if (disk.Life == life)
            {
                disk._locks.Remove(path);
            }
        }
    }
}
