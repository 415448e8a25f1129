using System.Runtime.InteropServices;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage;

/// <summary>
/// One loop's writer to the log. Owned by its loop, except for <see cref="Complete"/>, which the log thread calls.
/// </summary>
internal sealed class LogWriter(SegmentedLog log, ILogSink sink) : ILogWriter
{
    private readonly Dictionary<uint, Extent> _extents = [];
    private LogBuffer _open = new();
    private ulong _submitted;
    private ulong _persisted;

    // The append that was begun and not ended.
    private (uint Group, Extent Extent, int Count, int Bytes) _begun;
    private bool _hasBegun;

    public ILogSink Sink => sink;

    /// <summary>Log thread only: the highest batch in the current write, 0 for none.</summary>
    public ulong Written { get; set; }

    public int Pending => (int)(_submitted - Volatile.Read(ref _persisted));

    public Span<byte> BeginAppend(GroupId group, LogIndex first, int count, int bytes)
    {
        DropBegun();
        InvariantException.Require(count >= 0 && bytes <= LogRecord.PayloadBytesMax, "appended entries fit a record");
        if (!_extents.TryGetValue(group.Value, out Extent extent))
        {
            RecoveredGroup found = log.Recovered(group);
            extent = new Extent(found.Start, found.LastIndex);
        }

        InvariantException.Require(
            first > extent.Start && first <= extent.Last.Next(), "appended entries follow on those of the group");
        _begun = (group.Value, extent with { Last = new LogIndex(first.Value + (ulong)count - 1) }, count, bytes);
        _hasBegun = true;
        return LogRecord.BeginEntries(_open, group, first, count, bytes);
    }

    public void EndAppend()
    {
        InvariantException.Require(_hasBegun, "an append was begun");
        ReadOnlySpan<byte> record = _open.Last(LogRecord.RecordBytes(_begun.Bytes));
        ReadOnlySpan<byte> entries = record.Slice(RecordHeader.Bytes, _begun.Bytes);
        bool isWhole = LogRecord.CountEntries(entries) == _begun.Count;
        if (!isWhole)
        {
            // Never write what recovery would refuse.
            DropBegun();
        }

        InvariantException.Require(isWhole, "appended bytes are as many entries as said");
        LogRecord.EndEntries(_open, _begun.Bytes);
        _extents[_begun.Group] = _begun.Extent;
        _hasBegun = false;
    }

    public void Save(GroupId group, in HardState state)
    {
        DropBegun();
        LogRecord.WriteHardState(_open, group, state);
    }

    public void Restart(GroupId group, LogIndex index, Term term)
    {
        DropBegun();
        _extents[group.Value] = new Extent(index, index);
        LogRecord.WriteRestart(_open, group, index, term);
    }

    public ulong Submit()
    {
        DropBegun();
        if (_open.IsEmpty)
        {
            return 0;
        }

        _submitted++;
        _open = log.Submit(new SubmittedBatch(this, _open, _submitted));
        return _submitted;
    }

    public void Fetch(GroupId group, NodeId follower, LogIndex first, int bytesMax) =>
        log.Fetches.Put(new FetchRequest(sink, group, follower, first, bytesMax));

    /// <summary>Reports that the batch and those before it are on stable storage.</summary>
    public void Complete(ulong batch)
    {
        InvariantException.Require(batch > _persisted, "a writer's batches complete once and in order");
        Volatile.Write(ref _persisted, batch);
        sink.Persisted(batch);
    }

    /// <summary>Takes an append back that was begun and not ended: its group broke a rule and has stopped.</summary>
    private void DropBegun()
    {
        if (_hasBegun)
        {
            _open.GiveBack(LogRecord.RecordBytes(_begun.Bytes));
            _hasBegun = false;
        }
    }

    /// <summary>
    /// The extent of a group's log, including what this writer appended: the index before the first entry, and the last
    /// index.
    /// </summary>
    private readonly record struct Extent(LogIndex Start, LogIndex Last);
}

/// <summary>
/// A buffer of records to be written to the log, with reserved space in front for the record that begins a batch. The
/// array is pinned, so the kernel writes directly from it. Owned by one writer while open, by the log thread once
/// submitted.
/// </summary>
internal sealed class LogBuffer
{
    /// <summary>Capacity of a new buffer.</summary>
    public const int CapacityFirst = 64 * 1024;

    private byte[] _array = GC.AllocateUninitializedArray<byte>(CapacityFirst, pinned: true);

    /// <summary>Bytes in use, including the reserved space.</summary>
    public int Length { get; private set; } = LogRecord.BatchBytes;

    public int Capacity => _array.Length;

    /// <summary>The buffer holds no record.</summary>
    public bool IsEmpty => Length == LogRecord.BatchBytes;

    /// <summary>The reserved space in front.</summary>
    public Span<byte> Front => _array.AsSpan(0, LogRecord.BatchBytes);

    /// <summary>The records.</summary>
    public Span<byte> Body => _array.AsSpan(LogRecord.BatchBytes, Length - LogRecord.BatchBytes);

    /// <summary>The records, to be written.</summary>
    public ReadOnlyMemory<byte> BodyMemory =>
        MemoryMarshal.CreateFromPinnedArray(_array, LogRecord.BatchBytes, Length - LogRecord.BatchBytes);

    /// <summary>The reserved space and the records, to be written.</summary>
    public ReadOnlyMemory<byte> WholeMemory => MemoryMarshal.CreateFromPinnedArray(_array, 0, Length);

    /// <summary>Appends <paramref name="count"/> uninitialized bytes and returns them.</summary>
    public Span<byte> Take(int count)
    {
        if (_array.Length - Length < count)
        {
            Grow(count);
        }

        Span<byte> span = _array.AsSpan(Length, count);
        Length += count;
        return span;
    }

    /// <summary>The last <paramref name="count"/> bytes in use.</summary>
    public Span<byte> Last(int count) => _array.AsSpan(Length - count, count);

    /// <summary>Takes the last <paramref name="count"/> bytes back.</summary>
    public void GiveBack(int count)
    {
        InvariantException.Require(
            count >= 0 && Length - count >= LogRecord.BatchBytes, "only bytes that were taken are given back");
        Length -= count;
    }

    public void Clear() => Length = LogRecord.BatchBytes;

    private void Grow(int count)
    {
        int wanted = (int)Math.Max(checked(Length + count), Math.Min(_array.Length * 2L, Array.MaxLength));
        byte[] larger = GC.AllocateUninitializedArray<byte>(wanted, pinned: true);
        _array.AsSpan(0, Length).CopyTo(larger);
        _array = larger;
    }
}

/// <summary>A batch that a writer submitted, and its number.</summary>
internal readonly record struct SubmittedBatch(LogWriter Writer, LogBuffer Buffer, ulong Number);

/// <summary>
/// Group commit: writes the submitted batches of all writers as one batch of the log, with one write and one sync, and
/// reports them as persisted. It begins a batch only after the sync of the previous one has returned; recovery relies
/// on that. After a failure it must not be used again. Owned by the log thread. The way of a batch:
/// <see cref="LogWriter.Submit"/> → <see cref="BatchQueue.Put"/> → <see cref="RunOnce"/> →
/// <see cref="LogWriter.Complete"/>.
/// </summary>
internal sealed class GroupCommit : IDisposable
{
    private readonly BatchQueue _queue;
    private readonly LogPositions _positions;
    private readonly SegmentPreparer _preparer;
    private readonly SegmentedLogOptions _options;
    private readonly ulong _logId;

    private readonly List<SubmittedBatch> _taken = [];
    private readonly List<LogWriter> _touched = [];
    private readonly LogBuffer _front = new();
    private ReadOnlyMemory<byte>[] _parts = new ReadOnlyMemory<byte>[16];

    private IDiskFile _file;
    private ulong _segment;
    private long _capacity;
    private long _position;
    private ulong _nextBatch;
    private uint _seal;
    private bool _checkpointDue;
    private bool _marked;

    public GroupCommit(
        LogTail tail, LogPositions positions, BatchQueue queue, SegmentPreparer preparer, SegmentedLogOptions options)
    {
        _queue = queue;
        _positions = positions;
        _preparer = preparer;
        _options = options;
        _logId = tail.LogId;
        _file = tail.File;
        _capacity = tail.File.Length;
        _segment = tail.Segment;
        _position = tail.Position;
        _nextBatch = tail.NextBatch;
        _seal = new SegmentHeader(_logId, _segment, 0, false).Seal;
        _checkpointDue = _position == SegmentHeader.Bytes;
    }

    /// <summary>What was written and how long the disk took.</summary>
    public LogTimes Times { get; } = new();

    /// <summary>The segment being written.</summary>
    public ulong Segment => _segment;

    /// <summary>A new segment was begun, so the next one must be prepared. Cleared by the reader.</summary>
    public bool Rolled { get; set; }

    /// <summary>
    /// Writes, syncs and reports the waiting batches. False when none waited. On a disk error the caller must end the
    /// log.
    /// </summary>
    public bool RunOnce()
    {
        _queue.Take(_taken, _options.WriteBytesMax);
        if (_taken.Count == 0)
        {
            return false;
        }

        WriteBatch();
        _marked = false;
        CollectCompleted();
        _queue.Return(_taken);
        _taken.Clear();
        foreach (LogWriter writer in _touched)
        {
            ulong batch = writer.Written;
            writer.Written = 0;
            writer.Complete(batch);
        }

        _touched.Clear();
        return true;
    }

    /// <summary>
    /// Writes an empty batch after the last one, once, so that recovery can tell damage in that batch from a torn
    /// write.
    /// </summary>
    public void Mark()
    {
        if (!_marked)
        {
            WriteBatch();
            _marked = true;
        }
    }

    public void Dispose() => _file.Dispose();

    private void WriteBatch()
    {
        long bodyBytes = 0;
        foreach (SubmittedBatch batch in _taken)
        {
            bodyBytes += batch.Buffer.Body.Length;
        }

        if (_position + LogRecord.BatchBytes + bodyBytes > _capacity && _position > SegmentHeader.Bytes)
        {
            Roll();
        }

        InvariantException.Require(_position % LogRecord.Alignment == 0, "batches are aligned");
        int parts = Assemble(bodyBytes);
        long written = 0;
        for (int i = 0; i < parts; i++)
        {
            written += _parts[i].Length;
        }

        InvariantException.Require(
            written == LogRecord.BatchBytes + _front.Body.Length + bodyBytes, "the parts are the whole batch");
        long begun = _options.Time?.GetTimestamp() ?? 0;
        try
        {
            _file.Write(_position, _parts.AsSpan(0, parts));
        }
        catch (DiskException error)
        {
            throw Failed("Writing", error);
        }

        // Do not keep a buffer alive because it was once part of a large batch.
        _parts.AsSpan(0, parts).Clear();

        try
        {
            _file.SyncData();
        }
        catch (DiskException error)
        {
            throw Failed("Syncing", error);
        }

        Times.Synced(written, _options.Time?.GetElapsedTime(begun));
        _preparer.Synced(_nextBatch);
        InvariantException.Require(Publish() == _position + written, "the published records end with the batch");
        _position += written;
        _nextBatch++;
    }

    /// <summary>
    /// Seals the records and assembles the batch: its first record, a checkpoint if the segment is new, and the
    /// writers' records.
    /// </summary>
    private int Assemble(long bodyBytes)
    {
        if (_parts.Length < _taken.Count + 1)
        {
            Array.Resize(ref _parts, (_taken.Count + 1) * 2);
        }

        foreach (SubmittedBatch batch in _taken)
        {
            LogRecord.SealAll(batch.Buffer.Body, _seal);
        }

        _front.Clear();
        if (_checkpointDue)
        {
            LogRecord.WriteCheckpoint(_front, _positions.Groups);
            LogRecord.SealAll(_front.Body, _seal);
            bodyBytes += _front.Body.Length;
        }

        // The first writer's buffer has space for the batch's first record, so a batch of one writer is one contiguous
        // write.
        bool ownFront = _checkpointDue || _taken.Count == 0;
        LogBuffer front = ownFront ? _front : _taken[0].Buffer;
        LogRecord.WriteBatch(front.Front, _nextBatch, bodyBytes, _seal);
        int parts = 0;
        _parts[parts++] = front.WholeMemory;
        for (int i = ownFront ? 0 : 1; i < _taken.Count; i++)
        {
            _parts[parts++] = _taken[i].Buffer.BodyMemory;
        }

        return parts;
    }

    /// <summary>
    /// Makes the batch, which is on stable storage now, visible to readers. Returns the offset at which its records
    /// end.
    /// </summary>
    private long Publish()
    {
        long offset = _position + LogRecord.BatchBytes;
        _positions.AddRecords(_segment, offset, _front.Body);
        offset += _front.Body.Length;
        foreach (SubmittedBatch batch in _taken)
        {
            ReadOnlySpan<byte> body = batch.Buffer.Body;
            _positions.AddRecords(_segment, offset, body);
            offset += body.Length;
        }

        _checkpointDue = false;
        return offset;
    }

    private void Roll()
    {
        ulong next = _segment + 1;
        IDiskFile file;
        try
        {
            file = _preparer.Take(next);
        }
        catch (DiskException error)
        {
            throw new LogFailedException(
                $"Preparing log segment {next} failed: {error.Reason}; the node stops, and "
                    + "nothing more is acknowledged.",
                error);
        }

        _file.Dispose();
        _file = file;
        _capacity = file.Length;
        _segment = next;
        _position = SegmentHeader.Bytes;
        _seal = new SegmentHeader(_logId, next, 0, false).Seal;
        _checkpointDue = true;
        _positions.AddSegment(next, _capacity);
        Rolled = true;
    }

    private void CollectCompleted()
    {
        foreach (SubmittedBatch batch in _taken)
        {
            if (batch.Writer.Written == 0)
            {
                _touched.Add(batch.Writer);
            }

            InvariantException.Require(batch.Number > batch.Writer.Written, "a writer's batches keep their order");
            batch.Writer.Written = batch.Number;
        }
    }

    private LogFailedException Failed(string what, DiskException error) =>
        new(
            $"{what} log segment {_file.Path} at offset {_position} failed: {error.Reason}; the node stops, and "
                + "nothing more is acknowledged.",
            error);
}

/// <summary>
/// Carries batches from the writers to the log thread, and their buffers back. Any thread; one short lock.
/// </summary>
internal sealed class BatchQueue
{
    /// <summary>Idle buffers to keep: enough for a few writers with a few batches in flight each.</summary>
    private const int IdleMax = 32;

    /// <summary>Larger buffers are not kept, so that one huge value does not hold its memory forever.</summary>
    private const int IdleBytesMax = 4 << 20;

    private readonly Lock _lock = new();

    // A stack: the buffer returned last is taken first.
    private readonly List<LogBuffer> _idle = new(IdleMax);
    private SubmittedBatch[] _waiting = new SubmittedBatch[64];
    private int _count;
    private bool _closed;

    // The fewest idle buffers, and the largest batch, since the last call of LetGo.
    private int _idleFewest;
    private int _largest;

    /// <summary>Takes over a writer's batch and returns an empty buffer for its next one.</summary>
    public LogBuffer Put(in SubmittedBatch batch)
    {
        lock (_lock)
        {
            if (_closed)
            {
                // The log has failed or was closed: the batch is neither persisted nor reported.
                batch.Buffer.Clear();
                return batch.Buffer;
            }

            if (_count == _waiting.Length)
            {
                Array.Resize(ref _waiting, _count * 2);
            }

            _waiting[_count++] = batch;
            _largest = Math.Max(_largest, batch.Buffer.Length);
            if (_idle.Count == 0)
            {
                return new LogBuffer();
            }

            LogBuffer buffer = _idle[^1];
            _idle.RemoveAt(_idle.Count - 1);
            _idleFewest = Math.Min(_idleFewest, _idle.Count);
            return buffer;
        }
    }

    /// <summary>
    /// Moves waiting batches to <paramref name="target"/>, in order, up to <paramref name="bytesMax"/>, but at least
    /// one if any waits.
    /// </summary>
    public void Take(List<SubmittedBatch> target, int bytesMax)
    {
        lock (_lock)
        {
            long bytes = 0;
            int taken = 0;
            while (taken < _count && (taken == 0 || bytes + _waiting[taken].Buffer.Length <= bytesMax))
            {
                bytes += _waiting[taken].Buffer.Length;
                target.Add(_waiting[taken++]);
            }

            _count -= taken;
            Array.Copy(_waiting, taken, _waiting, 0, _count);
            Array.Clear(_waiting, _count, taken);
        }
    }

    /// <summary>Returns the buffers of persisted batches.</summary>
    public void Return(List<SubmittedBatch> batches)
    {
        lock (_lock)
        {
            foreach (SubmittedBatch batch in batches)
            {
                if (_idle.Count < IdleMax && batch.Buffer.Capacity <= IdleBytesMax)
                {
                    batch.Buffer.Clear();
                    _idle.Add(batch.Buffer);
                }
            }
        }
    }

    /// <summary>
    /// Drops idle buffers that were not used since the last call, and those more than four times as large as the
    /// largest batch since then.
    /// </summary>
    public void LetGo()
    {
        lock (_lock)
        {
            _idle.RemoveRange(0, _idleFewest);
            int useful = Math.Max(_largest, LogBuffer.CapacityFirst);
            _idle.RemoveAll(buffer => buffer.Capacity / 4 > useful);
            _idleFewest = _idle.Count;
            _largest = 0;
        }
    }

    /// <summary>Drops the waiting batches and all later ones.</summary>
    public void Close()
    {
        lock (_lock)
        {
            _closed = true;
            Array.Clear(_waiting, 0, _count);
            _count = 0;
        }
    }
}

/// <summary>What the log thread has written, and how long its syncs took. That thread adds; any thread reads.</summary>
internal sealed class LogTimes
{
    private long _bytes;
    private long _batches;

    /// <summary>Bytes written since the start.</summary>
    public long Bytes => Volatile.Read(ref _bytes);

    /// <summary>Batches written since the start, each with one sync.</summary>
    public long Batches => Volatile.Read(ref _batches);

    /// <summary>How long the syncs took.</summary>
    public DurationHistogram Syncs { get; } = new();

    /// <summary>A batch of this many bytes is on stable storage.</summary>
    /// <param name="bytes">Its bytes.</param>
    /// <param name="time">How long the sync took; null: it was not measured.</param>
    public void Synced(long bytes, TimeSpan? time)
    {
        Volatile.Write(ref _bytes, _bytes + bytes);
        Volatile.Write(ref _batches, _batches + 1);
        if (time is { } taken)
        {
            Syncs.Add((long)taken.TotalMicroseconds);
        }
    }
}
