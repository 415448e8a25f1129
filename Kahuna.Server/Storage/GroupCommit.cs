using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage;

/// <summary>
/// The write path: takes what all writers submitted, writes it as one batch with one sync, and reports. The next batch is
/// begun only after the sync returned; recovery relies on it. Owned by the log thread. After a failure it is dead for good.
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

    public GroupCommit(LogTail tail, LogPositions positions, BatchQueue queue, SegmentPreparer preparer, SegmentedLogOptions options)
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

    /// <summary>The segment that is written.</summary>
    public ulong Segment => _segment;

    /// <summary>A segment was begun since this was last asked, so the next one is wanted.</summary>
    public bool Rolled { get; set; }

    /// <summary>Writes and syncs what waits, and reports it. False when nothing waited. Disk errors are the caller's to turn into the log's end.</summary>
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

    /// <summary>Writes a mark behind the last batch, once, so that recovery can tell damage in that batch from a torn write.</summary>
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

        int parts = Assemble(bodyBytes);
        long written = 0;
        for (int i = 0; i < parts; i++)
        {
            written += _parts[i].Length;
        }

        try
        {
            _file.Write(_position, _parts.AsSpan(0, parts));
        }
        catch (DiskException error)
        {
            throw Failed("Writing", error);
        }

        // No buffer stays because it was once part of a large batch.
        _parts.AsSpan(0, parts).Clear();

        try
        {
            _file.SyncData();
        }
        catch (DiskException error)
        {
            throw Failed("Syncing", error);
        }

        _preparer.Synced(_nextBatch);
        Publish();
        _position += written;
        _nextBatch++;
    }

    /// <summary>Seals the records and puts the batch together: its first record, a checkpoint when the segment is new, the writers' records.</summary>
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

        // The first writer's buffer has room for the batch's first record, so that the usual batch is one piece.
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

    /// <summary>Lets readers see the batch, which is on stable storage now.</summary>
    private void Publish()
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
            throw new LogFailedException($"Preparing log segment {next} failed: {error.Reason}; the node stops, and nothing more is acknowledged.", error);
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

            batch.Writer.Written = batch.Number;
        }
    }

    private LogFailedException Failed(string what, DiskException error) =>
        new($"{what} log segment {_file.Path} at offset {_position} failed: {error.Reason}; the node stops, and nothing more is acknowledged.", error);
}
