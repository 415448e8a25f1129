using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Storage;

/// <summary>
/// The node's log on a disk (docs/log-format.md), without threads or a clock: an <see cref="ILogShell"/> calls its
/// steps. <see cref="CommitOnce"/>, <see cref="MarkIdle"/> and <see cref="CheckSpace"/> belong to the log thread,
/// <see cref="PrepareOnce"/> and <see cref="FetchOnce"/> to one thread each. Opening and replaying precede all of them.
/// </summary>
internal sealed class SegmentedLog : ILogStore
{
    private readonly DataDirectory _directory;
    private readonly IDisk _disk;
    private readonly SegmentedLogOptions _options;
    private readonly Action<ReportLine> _report;
    private readonly LogSpace _space;
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
        _space = new LogSpace(disk, directory.LogPath, options, report);
        _files = new SegmentFiles(directory.LogPath);
        LogRecovery recovery = new(disk, _files, options, report);
        LogTail tail = recovery.Run();
        _extents = tail.Extents;
        _positions = recovery.Positions;
        _logId = tail.LogId;
        foreach ((uint group, GroupPositions found) in _positions.Groups)
        {
            _recovered[group] = new RecoveredGroup(
                found.HardState, [.. found.Terms], found.LastIndex, found.Start, found.StartTerm);
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

    public string? RefuseWrites => _space.Refusal ?? _preparer.Refusal;

    /// <summary>Bytes of all current segments. Any thread, cheap.</summary>
    public long Bytes => _positions.Bytes;

    /// <summary>Number of current segments. Any thread, cheap.</summary>
    public int Segments => _positions.Segments;

    /// <summary>Locks the directory, recovers the log, and cuts an unfinished tail.</summary>
    /// <param name="dataDirectory">The node's data directory; created if missing.</param>
    /// <param name="options">Sizes and limits.</param>
    /// <param name="disk">The disk.</param>
    /// <param name="report">Receives lines for the operator.</param>
    /// <exception cref="DataDirectoryRefusedException">Another process holds the directory, or its format is
    /// unknown.</exception>
    /// <exception cref="LogDamagedException">Data that was on stable storage is missing or changed.</exception>
    /// <exception cref="IOException">The disk refused an operation.</exception>
    public static SegmentedLog Open(
        string dataDirectory, SegmentedLogOptions options, IDisk disk, Action<ReportLine>? report = null)
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

    /// <summary>Sets the scheduler of the log's steps. Before the first writer is opened.</summary>
    public void Attach(ILogShell shell)
    {
        _shell = shell;
        shell.WakePrepare();
    }

    /// <inheritdoc/>
    public RecoveredGroup Recovered(GroupId group) =>
        _recovered.TryGetValue(group.Value, out RecoveredGroup found)
            ? found
            : new RecoveredGroup(default, [], default, default, default);

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
    /// Log thread: writes, syncs and reports the submitted batches as one batch; then drops the oldest segment if
    /// possible. False when there was nothing to do, or the log has failed.
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

    /// <summary>
    /// Log thread, about once a second: checks the free disk space and retries failed work on segments.
    /// </summary>
    public void CheckSpace()
    {
        if (_failure is not null || _closed)
        {
            return;
        }

        _space.CheckDisk();
        Volatile.Write(ref _cutDue, true);
        _preparer.WantRecord();
        if (_preparer.HasWork)
        {
            _shell?.WakePrepare();
        }
    }

    /// <summary>Preparing thread: makes the next segment if one is wanted, and removes superfluous files.</summary>
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

    /// <summary>Reading thread: answers one waiting read request. False when there was none.</summary>
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
            // A log that cannot be read back must not be written further; the log thread ends it.
            entries.Length = 0;
            Volatile.Write(
                ref _readFailure,
                error as LogDamagedException
                    ?? (Exception)new LogFailedException(
                        $"Reading the log failed: {error.Message} The node stops.", error));
            _shell?.WakeCommit();
        }

        request.Sink.Fetched(request.Group, request.Follower, request.First, entries);
        return true;
    }

    /// <summary>
    /// After the last step: writes the closing mark and releases everything. Drops what was submitted but not
    /// committed.
    /// </summary>
    public void Close()
    {
        if (_closed)
        {
            return;
        }

        MarkIdle();

        // After a clean shutdown the next start knows the last batch.
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

    /// <summary>
    /// Writes a mark: it proves that the disk takes writes, and that everything recovered is on stable storage.
    /// </summary>
    private void Begin()
    {
        try
        {
            _commit.Mark();
            _preparer.Record();
            CheckSpace();
            _space.CheckLimit(_positions.Bytes);
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
        _space.CheckLimit(_positions.Bytes);
        bool rolled = _commit.Rolled;
        if (rolled)
        {
            _commit.Rolled = false;
            Volatile.Write(ref _cutDue, true);
        }

        // Cut before the next segment is requested: a dropped file can be reused for it without being filled.
        Cut();
        if (rolled)
        {
            _preparer.Want(_commit.Segment + 1);
            _shell?.WakePrepare();
        }
    }

    /// <summary>
    /// Drops the oldest segment if no group needs it and the log is large enough without it. Writes and syncs nothing,
    /// and checks only after a change. True when one was dropped; there may be more.
    /// </summary>
    private bool Cut()
    {
        if (!Volatile.Read(ref _cutDue))
        {
            return false;
        }

        // Clear it before the check: a release during the check sets it again, under the same lock.
        Volatile.Write(ref _cutDue, false);
        if (!_positions.TryDropFirstSegment(_options, out ulong segment))
        {
            return false;
        }

        // Its file stays until the preparing thread reuses or removes it. The log is valid with or without it.
        Volatile.Write(ref _cutDue, true);
        _preparer.Retire(segment);
        _space.CheckLimit(_positions.Bytes);
        _shell?.WakePrepare();
        _shell?.WakeFetch();
        return true;
    }

    /// <summary>Ends the log: nothing is written or reported as persisted from now on.</summary>
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
