using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage.States;

/// <summary>
/// One write of <see cref="FileStateStore"/>: a file beside its place, synced, renamed, the directory synced. Made when the first piece is written, so that every error of the disk comes
/// from <see cref="Add"/> or <see cref="Commit"/>. Owned by who began it; not thread-safe.
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

    /// <summary>Ended unless the step that begins here succeeds: after an error nobody knows what the file holds.</summary>
    private void Begin()
    {
        InvariantException.Require(!_ended, "a write goes on only when nothing failed and it was not committed");
        _ended = true;
    }

    private SnapshotWriter Snapshot() => _snapshot ??= new SnapshotWriter(disk.Open(path, DiskFileMode.Empty), header);

    private StateWriteFailedException Failed(DiskException error)
    {
        return new StateWriteFailedException($"The state in {place} was not replaced: {error.Message}", error.IsNoSpace, error);
    }
}
