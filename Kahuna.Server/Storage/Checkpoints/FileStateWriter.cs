using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage.Checkpoints;

/// <summary>
/// One write of <see cref="FileStateStore"/>: a temporary file that is synced and renamed into place, then a sync of
/// the directory. The file is created with the first piece, so that every disk error comes from <see cref="Add"/> or
/// <see cref="Commit"/>. Owned by the caller that began it; not thread-safe.
/// </summary>
internal sealed class FileStateWriter(IDisk disk, string path, string place, byte[] header) : IStateWriter
{
    private SnapshotWriter? _snapshot;
    private bool _ended;

    public void Add(ReadOnlySpan<byte> records, bool scattered = false)
    {
        Begin();
        try
        {
            Snapshot().Add(records);
        }
        catch (DiskException error)
        {
            throw Failed(error);
        }

        _ended = false;
    }

    public void Commit()
    {
        Begin();
        try
        {
            Snapshot().Finish();
            disk.Rename(path, place);
            disk.SyncDirectory(Path.GetDirectoryName(place)!);
        }
        catch (DiskException error)
        {
            throw Failed(error);
        }
    }

    public void Dispose()
    {
        if (_snapshot is null)
        {
            return;
        }

        _snapshot.Dispose();
        _snapshot = null;
        try
        {
            if (disk.List(Path.GetDirectoryName(path)!).Contains(Path.GetFileName(path)))
            {
                disk.Delete(path);
            }
        }
        catch (IOException)
        {
            // The next opening of the store removes it.
        }
    }

    /// <summary>
    /// Begins a step. The write is over unless the step succeeds: after an error the file's content is unknown.
    /// </summary>
    private void Begin()
    {
        InvariantException.Require(!_ended, "a write goes on only when nothing failed and it was not committed");
        _ended = true;
    }

    private SnapshotWriter Snapshot() => _snapshot ??= new SnapshotWriter(disk.Open(path, DiskFileMode.Empty), header);

    private StateWriteFailedException Failed(DiskException error)
    {
        return new StateWriteFailedException(
            $"The state in {place} was not replaced: {error.Message}", error.IsNoSpace, error);
    }
}
