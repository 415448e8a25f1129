using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage;

/// <summary>
/// The node's log over a disk (docs/log-format.md), without threads or a clock of its own: an <see cref="ILogShell"/> calls its steps.
/// <see cref="CommitOnce"/>, <see cref="MarkIdle"/> and <see cref="CheckSpace"/> belong to one thread (the log thread),
/// <see cref="PrepareOnce"/> and <see cref="FetchOnce"/> to one each; opening and replaying come before all of them.
/// </summary>
internal sealed class SegmentedLog : ILogStore
{
    private readonly DataDirectory _directory;
    private readonly IDisk _disk;
    private readonly SegmentedLogOptions _options;
    private readonly Action<ReportLine> _report;
    private readonly LogRoom _room;
    private readonly LogPositions _positions;
    private readonly Dictionary<uint, RecoveredGroup> _recovered = [];
    private readonly SegmentFiles _files;
    private readonly ulong _logId;
    private readonly BatchQueue _queue = new();
    private readonly FetchQueue _fetches = new();
    private readonly SegmentPreparer _preparer;
    private readonly GroupCommit _commit;
    private readonly EntryReader _reader;
    private readonly LogExtentFile _extents;
    private readonly Lock _writersLock = new();
    private readonly List<LogWriter> _writers = [];

    private ILogShell? _shell;
    private Exception? _readFailure;
    private Exception? _failure;
    private bool _cutDue;
    private bool _closed;

    private SegmentedLog(DataDirectory directory, SegmentedLogOptions options, IDisk disk, Action<ReportLine> report)
    {
        _directory = directory;
        _options = options;
        _disk = disk;
        _report = report;
        _room = new LogRoom(disk, directory.LogPath, options, report);
        _files = new SegmentFiles(directory.LogPath);
        LogRecovery recovery = new(disk, _files, options, report);
        LogTail tail = recovery.Run();
        _extents = tail.Extents;
        _positions = recovery.Positions;
        _logId = tail.LogId;
        foreach ((uint group, GroupPositions found) in _positions.Groups)
        {
            _recovered[group] = new RecoveredGroup(found.HardState, [.. found.Terms], found.LastIndex, found.Start, found.StartTerm);
        }

        _preparer = new SegmentPreparer(disk, _files, options, _extents);
        _preparer.Want(tail.Segment + 1);
        _commit = new GroupCommit(tail, _positions, _queue, _preparer, options);
        _reader = new EntryReader(disk, _files, _logId, _positions);
    }

    /// <summary>Why the log stopped, or null.</summary>
    public Exception? Failure => Volatile.Read(ref _failure);

    /// <inheritdoc/>
    public long HeldBytesMax => _options.HeldBytesMax;

    public string? RefuseWrites => _room.Refusal ?? _preparer.Refusal;

    /// <summary>Bytes of all segments that the log has now. Any thread, cheap.</summary>
    public long Bytes => _positions.Bytes;

    /// <summary>Number of segments that the log has now. Any thread, cheap.</summary>
    public int Segments => _positions.Segments;

    /// <summary>Locks the directory, reads the log, and cuts an unfinished tail.</summary>
    /// <param name="dataDirectory">The node's data directory; made when missing.</param>
    /// <param name="options">Sizes and limits.</param>
    /// <param name="disk">The disk.</param>
    /// <param name="report">Gets a line for each thing that an operator may want to know.</param>
    /// <exception cref="DataDirectoryRefusedException">Another process holds the directory, or its format is unknown.</exception>
    /// <exception cref="LogDamagedException">Something that was on stable storage is not there as it was.</exception>
    /// <exception cref="IOException">The disk refused an operation.</exception>
    public static SegmentedLog Open(string dataDirectory, SegmentedLogOptions options, IDisk disk, Action<ReportLine>? report = null)
    {
        DataDirectory directory = DataDirectory.Open(disk, dataDirectory);
        try
        {
            SegmentedLog log = new(directory, options, disk, report ?? (static _ => { }));
            log.Begin();
            return log;
        }
        catch
        {
            directory.Dispose();
            throw;
        }
    }

    /// <summary>Names who runs the log's steps; before the first writer is opened.</summary>
    public void Attach(ILogShell shell)
    {
        _shell = shell;
        shell.WakePrepare();
    }

    /// <inheritdoc/>
    public RecoveredGroup Recovered(GroupId group) =>
        _recovered.TryGetValue(group.Value, out RecoveredGroup found) ? found : new RecoveredGroup(default, [], default, default, default);

    /// <inheritdoc/>
    public void Replay(GroupId group, LogIndex first, LogIndex last, Action<LogIndex, ReadOnlyMemory<byte>> visit)
    {
        using EntryReader reader = new(_disk, _files, _logId, _positions);
        reader.Visit(group, first, last, visit);
    }

    /// <inheritdoc/>
    public ILogWriter OpenWriter(ILogSink sink)
    {
        LogWriter writer = new(this, sink);
        lock (_writersLock)
        {
            _writers.Add(writer);
            if (_failure is null)
            {
                return writer;
            }
        }

        sink.Failed(_failure);
        return writer;
    }

    /// <inheritdoc/>
    public void Release(GroupId group, LogIndex index)
    {
        if (_positions.Release(group, index, _options))
        {
            Volatile.Write(ref _cutDue, true);
            _shell?.WakeCommit();
        }
    }

    /// <inheritdoc/>
    public void Abandon(GroupId group) => _positions.Abandon(group);

    /// <inheritdoc/>
    public LogIndex StartOf(GroupId group) => _positions.StartOf(group);

    /// <inheritdoc/>
    public long BytesSince(GroupId group, LogIndex index) => _positions.BytesSince(group, index);

    // ---- Steps, called by the shell

    /// <summary>
    /// Log thread: writes and syncs what was submitted, as one batch, and reports it; then drops the oldest segment, if there is one that may go. False when
    /// there was nothing to do, or the log is dead.
    /// </summary>
    public bool CommitOnce()
    {
        if (_failure is not null || _closed)
        {
            return false;
        }

        try
        {
            if (Volatile.Read(ref _readFailure) is Exception readFailure)
            {
                throw readFailure;
            }

            if (!_commit.RunOnce())
            {
                return Cut();
            }

            AfterWrite();
            return true;
        }
        catch (Exception error) when (error is LogFailedException or LogDamagedException)
        {
            Fail(error);
            return false;
        }
    }

    /// <summary>Log thread, when nothing was submitted for a while: closes the last batch with a mark.</summary>
    public void MarkIdle()
    {
        if (_failure is not null || _closed)
        {
            return;
        }

        try
        {
            _commit.Mark();
            AfterWrite();
        }
        catch (LogFailedException error)
        {
            Fail(error);
        }
    }

    /// <summary>Log thread, about once a second: looks at the room on the disk, and tries again what could not be done to segments.</summary>
    public void CheckSpace()
    {
        if (_failure is not null || _closed)
        {
            return;
        }

        _room.CheckDisk();
        Volatile.Write(ref _cutDue, true);
        _preparer.WantRecord();
        if (_preparer.HasWork)
        {
            _shell?.WakePrepare();
        }
    }

    /// <summary>Preparing thread: makes the next segment when one is wanted, and removes those that nobody will use again.</summary>
    public void PrepareOnce()
    {
        if (Failure is not null)
        {
            return;
        }

        string? before = _preparer.Refusal;
        _preparer.RunOnce();
        if (_preparer.Refusal is string refusal && before is null)
        {
            _report($"Log: {refusal}");
        }
    }

    /// <summary>Reading thread: reads for one waiting wish and answers it. False when there was none.</summary>
    public bool FetchOnce()
    {
        if (!_fetches.TryTake(out FetchRequest request))
        {
            _reader.CloseDropped();
            return false;
        }

        ByteBuffer entries = ByteBuffer.Rent();
        try
        {
            _reader.Read(request.Group, request.First, request.BytesMax, entries);
        }
        catch (Exception error) when (error is IOException or LogDamagedException)
        {
            // A log that cannot be read back must not be written on; the log thread ends it.
            entries.Length = 0;
            Volatile.Write(ref _readFailure, error as LogDamagedException ?? (Exception)new LogFailedException($"Reading the log failed: {error.Message} The node stops.", error));
            _shell?.WakeCommit();
        }

        request.Sink.Fetched(request.Group, request.Follower, request.First, entries);
        return true;
    }

    /// <summary>After the last step: writes the closing mark and lets go of everything. What was submitted and not committed is dropped.</summary>
    public void Close()
    {
        if (_closed)
        {
            return;
        }

        MarkIdle();

        // After a proper end the next start knows of every batch.
        _preparer.WantRecord();
        if (_preparer.RecordWanted() is string reason)
        {
            _report($"Log: {reason}");
        }

        _closed = true;
        _queue.Close();
        _commit.Dispose();
        _preparer.Dispose();
        _reader.Dispose();
        _extents.Dispose();
        _directory.Dispose();
    }

    /// <inheritdoc/>
    public ValueTask DisposeAsync()
    {
        Close();
        return ValueTask.CompletedTask;
    }

    // ---- From the writers

    public LogBuffer Submit(in SubmittedBatch batch)
    {
        LogBuffer next = _queue.Put(batch);
        _shell?.WakeCommit();
        return next;
    }

    /// <inheritdoc cref="BatchQueue.LetGo"/>
    public void LetGo() => _queue.LetGo();

    public void Fetch(in FetchRequest request)
    {
        _fetches.Put(request);
        _shell?.WakeFetch();
    }

    /// <summary>The first write proves that this disk takes writes, and covers what recovery found with a mark.</summary>
    private void Begin()
    {
        try
        {
            _commit.Mark();
            _preparer.Record();
            CheckSpace();
            _room.CheckLimit(_positions.Bytes);
        }
        catch
        {
            _commit.Dispose();
            _reader.Dispose();
            _extents.Dispose();
            throw;
        }
    }

    private void AfterWrite()
    {
        _room.CheckLimit(_positions.Bytes);
        bool rolled = _commit.Rolled;
        if (rolled)
        {
            _commit.Rolled = false;
            Volatile.Write(ref _cutDue, true);
        }

        // Before the next segment is wanted: one that goes now can become it, without being filled.
        Cut();
        if (rolled)
        {
            _preparer.Want(_commit.Segment + 1);
            _shell?.WakePrepare();
        }
    }

    /// <summary>
    /// Drops the oldest segment when no group needs it and the log is large enough without it. Writes and syncs nothing, and looks only when something
    /// has changed since the last time. True when there was one; there may be more.
    /// </summary>
    private bool Cut()
    {
        if (!Volatile.Read(ref _cutDue))
        {
            return false;
        }

        // Before the look: what is released during it, under the same lock as the look, brings the next one.
        Volatile.Write(ref _cutDue, false);
        if (!_positions.TryDropFirstSegment(_options, out ulong segment))
        {
            return false;
        }

        // Its file stays until the preparing thread uses or removes it. The log is the same with it and without it.
        Volatile.Write(ref _cutDue, true);
        _preparer.Retire(segment);
        _room.CheckLimit(_positions.Bytes);
        _shell?.WakePrepare();
        _shell?.WakeFetch();
        return true;
    }

    /// <summary>The log's end: nothing is written or reported persisted from here on.</summary>
    private void Fail(Exception error)
    {
        LogWriter[] writers;
        lock (_writersLock)
        {
            Volatile.Write(ref _failure, error);
            writers = [.. _writers];
        }

        _queue.Close();
        foreach (LogWriter writer in writers)
        {
            writer.Sink.Failed(error);
        }
    }
}
