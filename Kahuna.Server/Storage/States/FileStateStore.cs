using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage.States;

/// <summary>
/// Keeps each group's state as one snapshot file, <c>state-GROUP.snapshot</c>, replaced whole with each write. Needs no library, and writes everything each time: for small
/// states and for where RocksDB cannot be had. Owned by the node; one thread at a time.
/// </summary>
internal sealed class FileStateStore : IStateStore
{
    private const string Unfinished = ".new";

    private readonly IDisk _disk;
    private readonly string _directory;

    /// <summary>Opens the directory, makes it when it is not there, and removes what an interrupted write left.</summary>
    public FileStateStore(IDisk disk, string directory)
    {
        _disk = disk;
        _directory = directory;
        disk.CreateDirectory(directory);
        foreach (string name in disk.List(directory))
        {
            if (name.EndsWith(Unfinished, StringComparison.Ordinal))
            {
                disk.Delete(Path.Combine(directory, name));
            }
        }
    }

    public bool TakesWholeStates => true;

    public StateMark? Find(GroupId group)
    {
        if (!_disk.List(_directory).Contains(NameOf(group)))
        {
            return null;
        }

        using IDiskFile file = _disk.Open(PathOf(group), DiskFileMode.Existing);
        return SnapshotReader.ReadMark(file, group);
    }

    public void Load(GroupId group, StateRecordSink sink)
    {
        using IDiskFile file = _disk.Open(PathOf(group), DiskFileMode.Existing);
        SnapshotReader.ReadMark(file, group);
        SnapshotReader.ReadRecords(file, sink);
    }

    public IStateWriter BeginWrite(GroupId group, in StateMark mark)
    {
        string path = PathOf(group) + Unfinished;
        return new Writer(this, group, path, new SnapshotWriter(_disk.Open(path, DiskFileMode.Empty), group, mark));
    }

    public void Dispose()
    {
    }

    private static string NameOf(GroupId group) => $"state-{group}.snapshot";

    private string PathOf(GroupId group) => Path.Combine(_directory, NameOf(group));

    private sealed class Writer(FileStateStore store, GroupId group, string path, SnapshotWriter snapshot) : IStateWriter
    {
        private bool _committed;

        public void Add(ReadOnlySpan<byte> records) => snapshot.Add(records);

        public void Commit()
        {
            snapshot.Finish();
            store._disk.Rename(path, store.PathOf(group));
            store._disk.SyncDirectory(store._directory);
            _committed = true;
        }

        public void Dispose()
        {
            snapshot.Dispose();
            if (!_committed && store._disk.List(store._directory).Contains(Path.GetFileName(path)))
            {
                store._disk.Delete(path);
            }
        }
    }
}
