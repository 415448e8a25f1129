using System.Collections.Concurrent;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage;

/// <summary>
/// Prepares the next segment ahead of its use: a file filled with zeros, or a retired one with a new header; synced,
/// then named and recorded outside of the log. The log thread requests, takes and retires segments; the preparing
/// thread makes them. One lock guards the work: a log thread that takes a segment too early waits for it, or makes it
/// itself. Retired files are removed oldest first, so a crash never leaves a gap between segments.
/// </summary>
internal sealed class SegmentPreparer(
    IDisk disk, SegmentFiles files, SegmentedLogOptions options, LogExtentFile extents)
    : IDisposable
{
    private const int StepBytes = 1 << 20;

    /// <summary>
    /// Retired files to keep for reuse. A flush frees several segments at once, and each reused file saves filling one.
    /// </summary>
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
    private ulong _retiredLast;

    /// <summary>Why the wanted segment could not be made yet, or null.</summary>
    public string? Refusal => Volatile.Read(ref _refusal);

    /// <summary>There is work: a wanted segment, more retired files than to keep, or an extent to record.</summary>
    public bool HasWork =>
        Volatile.Read(ref _wanted) > Volatile.Read(ref _readySegment)
            || _retired.Count > RetiredMax
            || Volatile.Read(ref _recordDue);

    /// <summary>Requests the next segment.</summary>
    public void Want(ulong segment) => Volatile.Write(ref _wanted, segment);

    /// <summary>Log thread: reports that this batch is on stable storage.</summary>
    public void Synced(ulong batch)
    {
        InvariantException.Require(batch > _synced, "batches are synced in order");
        Volatile.Write(ref _synced, batch);
    }

    /// <summary>Log thread, about once a second: requests to record the log's extent if it has grown.</summary>
    public void WantRecord() =>
        Volatile.Write(ref _recordDue, Volatile.Read(ref _synced) != Volatile.Read(ref _recorded));

    /// <summary>Records the log's extent now. Not concurrently with <see cref="RunOnce"/>.</summary>
    /// <exception cref="DiskException">It could not be recorded; the previous record stays valid.</exception>
    public void Record() => Record(extents.Latest.Segment);

    /// <summary>
    /// Makes the wanted segment, removes superfluous files and records the log's extent. A failure becomes
    /// <see cref="Refusal"/>, and the next call tries again.
    /// </summary>
    public void RunOnce()
    {
        string? refusal = MakeWanted();
        if (refusal is null && RecordWanted() is string reason)
        {
            refusal = reason + " Writes are refused until it can be; reads go on.";
        }

        while (refusal is null && _retired.Count > RetiredMax)
        {
            refusal = RemoveOldest();
        }

        Volatile.Write(ref _refusal, refusal);
    }

    /// <summary>Hands over the segment. Makes it now if it is not ready.</summary>
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
    /// Hands back the file of a segment that the log no longer needs, in order of segment numbers. It is reused or
    /// deleted. Log thread; never waits.
    /// </summary>
    public void Retire(ulong segment)
    {
        InvariantException.Require(segment > _retiredLast, "segments are retired in order");
        _retiredLast = segment;
        _retired.Enqueue(segment);
    }

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
                return $"The next log segment could not be prepared ({error.Reason}), so writes are refused "
                    + "until it can be; reads go on.";
            }
        }
    }

    /// <summary>Records the log's extent if that was requested. Returns why it could not, or null.</summary>
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

    /// <summary>
    /// Deletes the oldest retired file. One per hold of the lock, because the log thread may wait for it.
    /// </summary>
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
                return $"The log segment {files.Path(segment)}, which is no longer needed, could not be removed "
                    + $"({error.Reason}), so writes are refused until it can be; reads go on.";
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
        InvariantException.Require(_ready is null, "a prepared segment is taken before the next one is made");
        _ready = file;
        Volatile.Write(ref _readySegment, segment);
    }

    private IDiskFile Make(ulong segment)
    {
        InvariantException.Require(segment >= extents.Latest.Segment, "segments are made in order");
        SegmentHeader header = new(extents.Latest.LogId, segment, options.CapacityOf(segment), Recycled: false);
        IDiskFile file = TryReuse(header) ?? Fill(header);
        try
        {
            file.SyncData();
            disk.Rename(files.Temporary, files.Path(segment));
            disk.SyncDirectory(files.Directory);

            // Record it before its first batch: from then on, a log without this file has lost data.
            Record(segment);
            file.Dispose();
            return disk.Open(files.Path(segment), options.WriteMode);
        }
        catch
        {
            file.Dispose();
            throw;
        }
    }

    /// <summary>
    /// Reuses a retired file of the right size. Its old name is durably gone before its header changes, so a crash in
    /// between leaves either a temporary file or an old segment.
    /// </summary>
    private IDiskFile? TryReuse(SegmentHeader header)
    {
        while (_retired.TryPeek(out ulong segment))
        {
            // It stays the oldest until it has lost its name: after an error no younger one may be removed before it.
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

                // One sync at the end would delay the log's own syncs by tens of milliseconds; small ones delay them by
                // one or two.
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
            // Free its space, which the disk may lack.
            disk.Delete(files.Temporary);
        }
        catch (DiskException)
        {
            // The original error says more, and the next start deletes the file.
        }
    }

    private static void WriteHeader(IDiskFile file, SegmentHeader header)
    {
        byte[] page = new byte[SegmentHeader.Bytes];
        header.Write(page);
        file.Write(0, [page]);
    }
}
