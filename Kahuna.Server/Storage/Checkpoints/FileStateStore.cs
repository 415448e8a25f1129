using System.Globalization;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage.Checkpoints;

/// <summary>
/// Checkpoints of each group in one snapshot file, <c>state-GROUP.snapshot</c>, which each write replaces. Needs no
/// library, but always writes the whole state: for small states, and for systems without RocksDB. Owned by the node;
/// one thread at a time.
/// </summary>
internal sealed class FileStateStore : IStateStore
{
    private const string Unfinished = ".new";

    private readonly IDisk _disk;
    private readonly string _directory;
    private long _writers;

    /// <summary>
    /// Opens or creates the directory, and removes the files of interrupted writes. Syncs the directory: the name of a
    /// found state may be in the system's memory only (a killed process, or a failed sync), and what follows relies on
    /// it.
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

    public CheckpointMark? Find(GroupId group)
    {
        using SnapshotReader? reader = Open(group);
        return reader?.Mark;
    }

    public void Load(GroupId group, RowImageSink sink)
    {
        using SnapshotReader? reader = Open(group);
        while (reader is not null && reader.TryTake(out RowImage record))
        {
            sink(record);
        }
    }

    public IStateWriter BeginWrite(GroupId group, in CheckpointMark mark, bool whole)
    {
        InvariantException.Require(whole, "a store of snapshot files takes whole states");
        string path = $"{PathOf(group)}.{(++_writers).ToString(CultureInfo.InvariantCulture)}{Unfinished}";
        return new FileStateWriter(_disk, path, PathOf(group), SnapshotFormat.Header(group, mark));
    }

    /// <summary>The open file keeps its content when a later write gives its name to another file.</summary>
    public IStateReader? OpenReader(GroupId group) => Open(group);

    public void Dispose()
    {
    }

    private static string NameOf(GroupId group) => $"state-{group}.snapshot";

    private SnapshotReader? Open(GroupId group) =>
        _disk.List(_directory).Contains(NameOf(group))
            ? new SnapshotReader(_disk.Open(PathOf(group), DiskFileMode.Existing), group)
            : null;

    private string PathOf(GroupId group) => Path.Combine(_directory, NameOf(group));
}
