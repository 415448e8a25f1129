using System.Globalization;
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
    private long _writers;

    /// <summary>
    /// Opens the directory, makes it when it is not there, and removes what an interrupted write left. A state that is there is one that stays: its name may be in the system's
    /// memory only (a killed process, or a sync that failed), and what is built on it from now on is not.
    /// </summary>
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

        disk.SyncDirectory(directory);
    }

    public bool TakesWholeStates => true;

    public bool WantsWhole(GroupId group) => true;

    public StateMark? Find(GroupId group)
    {
        using SnapshotReader? reader = Open(group);
        return reader?.Mark;
    }

    public void Load(GroupId group, StateRecordSink sink)
    {
        using SnapshotReader? reader = Open(group);
        while (reader is not null && reader.TryTake(out StateRecord record))
        {
            sink(record);
        }
    }

    public IStateWriter BeginWrite(GroupId group, in StateMark mark, bool whole)
    {
        InvariantException.Require(whole, "a store of snapshot files takes whole states");
        string path = $"{PathOf(group)}.{(++_writers).ToString(CultureInfo.InvariantCulture)}{Unfinished}";
        return new FileStateWriter(_disk, path, PathOf(group), SnapshotFormat.Header(group, mark));
    }

    /// <summary>The open file stays what it is when a later write gives its name to another one.</summary>
    public IStateReader? OpenReader(GroupId group) => Open(group);

    public void Dispose()
    {
    }

    private static string NameOf(GroupId group) => $"state-{group}.snapshot";

    private SnapshotReader? Open(GroupId group) =>
        _disk.List(_directory).Contains(NameOf(group)) ? new SnapshotReader(_disk.Open(PathOf(group), DiskFileMode.Existing), group) : null;

    private string PathOf(GroupId group) => Path.Combine(_directory, NameOf(group));
}
