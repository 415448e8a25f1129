using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage;

/// <summary>
/// Makes the next segment ahead of its use: filled with zeros, or a retired one with a new header, synced, then named. The log
/// thread wants and takes segments; the preparing thread makes them; one lock, so that whoever takes too early waits for the
/// work under way or does it itself.
/// </summary>
internal sealed class SegmentPreparer(IDisk disk, SegmentFiles files, ulong logId, SegmentedLogOptions options) : IDisposable
{
    private const int StepBytes = 1 << 20;

    private readonly Lock _lock = new();
    private readonly Queue<string> _retired = new();
    private byte[]? _zeros;
    private IDiskFile? _ready;
    private ulong _readySegment;
    private ulong _wanted;
    private string? _refusal;

    /// <summary>Why the wanted segment could not be made so far, or null.</summary>
    public string? Refusal => Volatile.Read(ref _refusal);

    /// <summary>A segment is wanted and not made yet.</summary>
    public bool HasWork => Volatile.Read(ref _wanted) > Volatile.Read(ref _readySegment);

    /// <summary>Says which segment to make next.</summary>
    public void Want(ulong segment) => Volatile.Write(ref _wanted, segment);

    /// <summary>Makes the wanted segment. A failure becomes <see cref="Refusal"/>, and the next call tries again.</summary>
    public void RunOnce()
    {
        lock (_lock)
        {
            ulong wanted = Volatile.Read(ref _wanted);
            if (wanted <= _readySegment)
            {
                return;
            }

            try
            {
                SetReady(wanted, Make(wanted));
                Volatile.Write(ref _refusal, null);
            }
            catch (DiskException error)
            {
                Volatile.Write(ref _refusal, $"The next log segment could not be prepared ({error.Reason}), so writes are refused until it can be; reads go on.");
            }
        }
    }

    /// <summary>Hands the segment over, made now when it is not ready.</summary>
    public IDiskFile Take(ulong segment)
    {
        lock (_lock)
        {
            if (_ready is null || _readySegment != segment)
            {
                SetReady(segment, Make(segment));
            }

            IDiskFile file = _ready!;
            _ready = null;
            return file;
        }
    }

    /// <summary>Hands over the file of a segment that the log needs no more; it will be used again, or deleted.</summary>
    public void Retire(ulong segment)
    {
        lock (_lock)
        {
            _retired.Enqueue(files.Path(segment));
        }
    }

    public void Dispose()
    {
        lock (_lock)
        {
            _ready?.Dispose();
            _ready = null;
        }
    }

    private void SetReady(ulong segment, IDiskFile file)
    {
        _ready = file;
        Volatile.Write(ref _readySegment, segment);
    }

    private IDiskFile Make(ulong segment)
    {
        SegmentHeader header = new(logId, segment, options.CapacityOf(segment), Recycled: false);
        IDiskFile file = TryReuse(header) ?? Fill(header);
        try
        {
            file.SyncData();
            disk.Rename(files.Temporary, files.Path(segment));
            disk.SyncDirectory(files.Directory);
            file.Dispose();
            return disk.Open(files.Path(segment), DiskFileMode.Existing);
        }
        catch
        {
            file.Dispose();
            throw;
        }
    }

    /// <summary>
    /// Takes a retired file of the right size. Its old name is gone for good before its header changes, so that a crash in
    /// between leaves a temporary file or an old segment, never something between the two.
    /// </summary>
    private IDiskFile? TryReuse(SegmentHeader header)
    {
        while (_retired.TryDequeue(out string? path))
        {
            disk.Rename(path, files.Temporary);
            disk.SyncDirectory(files.Directory);
            IDiskFile file = disk.Open(files.Temporary, DiskFileMode.Existing);
            if (file.Length == header.Capacity)
            {
                WriteHeader(file, header with { Recycled = true });
                return file;
            }

            file.Dispose();
            disk.Delete(files.Temporary);
        }

        return null;
    }

    private IDiskFile Fill(SegmentHeader header)
    {
        IDiskFile file = disk.Open(files.Temporary, DiskFileMode.Empty);
        try
        {
            WriteHeader(file, header);
            _zeros ??= new byte[Math.Min(StepBytes, options.SegmentBytes)];
            for (long offset = SegmentHeader.Bytes; offset < header.Capacity;)
            {
                int step = (int)Math.Min(_zeros.Length, header.Capacity - offset);
                file.Write(offset, [_zeros.AsMemory(0, step)]);
                offset += step;

                // One sync at the end would hold up the log's own syncs for tens of milliseconds; many small ones for one or two.
                file.SyncData();
            }

            return file;
        }
        catch
        {
            file.Dispose();
            DeleteUnfinished();
            throw;
        }
    }

    private void DeleteUnfinished()
    {
        try
        {
            // What it took up may be the very room that others lack.
            disk.Delete(files.Temporary);
        }
        catch (DiskException)
        {
            // The error that led here says more, and the next start deletes the file.
        }
    }

    private static void WriteHeader(IDiskFile file, SegmentHeader header)
    {
        byte[] page = new byte[SegmentHeader.Bytes];
        header.Write(page);
        file.Write(0, [page]);
    }
}
