using System.Collections.Concurrent;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage;

/// <summary>
/// Makes the next segment ahead of its use: filled with zeros, or a retired one with a new header, synced, then named and recorded outside of the log. The log
/// thread wants, takes and retires segments; the preparing thread makes them; one lock, so that whoever takes too early waits for the
/// work under way or does it itself. Retired files leave the directory oldest first, so that whatever a crash leaves of them lacks no segment in the middle.
/// </summary>
internal sealed class SegmentPreparer(IDisk disk, SegmentFiles files, SegmentedLogOptions options, LogExtentFile extents) : IDisposable
{
    private const int StepBytes = 1 << 20;

    /// <summary>Retired files kept to be used again: a flush lets several segments go at once, and each one used again saves filling one.</summary>
    private const int RetiredMax = 2;

    private readonly Lock _lock = new();
    private readonly ConcurrentQueue<ulong> _retired = new();
    private byte[]? _zeros;
    private IDiskFile? _ready;
    private ulong _readySegment;
    private ulong _wanted;
    private string? _refusal;
    private ulong _synced = extents.Latest.Batch;
    private ulong _recorded = extents.Latest.Batch;
    private bool _recordDue;

    /// <summary>Why the wanted segment could not be made so far, or null.</summary>
    public string? Refusal => Volatile.Read(ref _refusal);

    /// <summary>A segment is wanted and not made yet, or there are more retired ones than are kept, or it is time to record how far the log reaches.</summary>
    public bool HasWork => Volatile.Read(ref _wanted) > Volatile.Read(ref _readySegment) || _retired.Count > RetiredMax || Volatile.Read(ref _recordDue);

    /// <summary>Says which segment to make next.</summary>
    public void Want(ulong segment) => Volatile.Write(ref _wanted, segment);

    /// <summary>Log thread: this batch is on stable storage.</summary>
    public void Synced(ulong batch) => Volatile.Write(ref _synced, batch);

    /// <summary>Log thread, about once a second: how far the log reaches is to be recorded if it has grown.</summary>
    public void WantRecord() => Volatile.Write(ref _recordDue, Volatile.Read(ref _synced) != Volatile.Read(ref _recorded));

    /// <summary>Records how far the log reaches now. Not beside <see cref="RunOnce"/>.</summary>
    /// <exception cref="DiskException">It could not be recorded; what was recorded before stands.</exception>
    public void Record() => Record(extents.Latest.Segment);

    /// <summary>Makes the wanted segment, removes superfluous ones and records how far the log reaches. A failure becomes <see cref="Refusal"/>, and the next call tries again.</summary>
    public void RunOnce()
    {
        string? refusal = MakeWanted() ?? (RecordWanted() is string reason ? reason + " Writes are refused until it can be; reads go on." : null);
        while (refusal is null && _retired.Count > RetiredMax)
        {
            refusal = RemoveOldest();
        }

        Volatile.Write(ref _refusal, refusal);
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

    /// <summary>
    /// Hands over the file of a segment that the log needs no more, in the order of their numbers; it will be used again, or deleted. Any thread; never waits.
    /// </summary>
    public void Retire(ulong segment) => _retired.Enqueue(segment);

    public void Dispose()
    {
        lock (_lock)
        {
            _ready?.Dispose();
            _ready = null;
        }
    }

    private string? MakeWanted()
    {
        lock (_lock)
        {
            ulong wanted = Volatile.Read(ref _wanted);
            if (wanted <= _readySegment)
            {
                return null;
            }

            try
            {
                SetReady(wanted, Make(wanted));
                return null;
            }
            catch (DiskException error)
            {
                return $"The next log segment could not be prepared ({error.Reason}), so writes are refused until it can be; reads go on.";
            }
        }
    }

    /// <summary>Records how far the log reaches, when that is wanted; returns why it could not be.</summary>
    public string? RecordWanted()
    {
        lock (_lock)
        {
            if (!Volatile.Read(ref _recordDue))
            {
                return null;
            }

            try
            {
                Record();
                Volatile.Write(ref _recordDue, false);
                return null;
            }
            catch (DiskException error)
            {
                return $"How far the log reaches could not be recorded: {error.Message}";
            }
        }
    }

    /// <summary>Deletes the oldest retired file for good; one per holding of the lock, for which the log thread may wait.</summary>
    private string? RemoveOldest()
    {
        lock (_lock)
        {
            if (_retired.Count <= RetiredMax || !_retired.TryPeek(out ulong segment))
            {
                return null;
            }

            try
            {
                disk.Delete(files.Path(segment));
                _retired.TryDequeue(out _);
                disk.SyncDirectory(files.Directory);
                return null;
            }
            catch (DiskException error)
            {
                return $"The log segment {files.Path(segment)}, which is no longer needed, could not be removed ({error.Reason}), so writes are refused until it can be; reads go on.";
            }
        }
    }

    private void Record(ulong segment)
    {
        ulong batch = Volatile.Read(ref _synced);
        extents.Write(extents.Latest with { Segment = segment, Batch = batch });
        Volatile.Write(ref _recorded, batch);
    }

    private void SetReady(ulong segment, IDiskFile file)
    {
        _ready = file;
        Volatile.Write(ref _readySegment, segment);
    }

    private IDiskFile Make(ulong segment)
    {
        SegmentHeader header = new(extents.Latest.LogId, segment, options.CapacityOf(segment), Recycled: false);
        IDiskFile file = TryReuse(header) ?? Fill(header);
        try
        {
            file.SyncData();
            disk.Rename(files.Temporary, files.Path(segment));
            disk.SyncDirectory(files.Directory);

            // Before its first batch: once there is one, a log without this file has lost it.
            Record(segment);
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
        while (_retired.TryPeek(out ulong segment))
        {
            // It stays the oldest until it has lost its name: after an error no younger one must go before it.
            disk.Rename(files.Path(segment), files.Temporary);
            _retired.TryDequeue(out _);
            disk.SyncDirectory(files.Directory);
            IDiskFile file = disk.Open(files.Temporary, DiskFileMode.Existing);
            try
            {
                if (file.Length == header.Capacity)
                {
                    WriteHeader(file, header with { Recycled = true });
                    return file;
                }
            }
            catch
            {
                file.Dispose();
                throw;
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
