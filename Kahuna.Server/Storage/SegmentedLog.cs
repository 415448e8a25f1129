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
    private readonly IReadOnlyDictionary<uint, RecoveredGroup> _recovered;
    private readonly SegmentFiles _files;
    private readonly ulong _logId;
    private readonly BatchQueue _queue = new();
    private readonly SegmentPreparer _preparer;
    private readonly GroupCommit _commit;
    private readonly EntryFetches _fetches;
    private readonly LogExtentFile _extents;
    private readonly Lock _writersLock = new();
    private readonly List<LogWriter> _writers = [];

    private ILogShell? _shell;
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
        _recovered = recovery.Groups();
        _preparer = new SegmentPreparer(disk, _files, options, _extents);
        _preparer.Want(tail.Segment + 1);
        _commit = new GroupCommit(tail, _positions, _queue, _preparer, options);
        _fetches = new EntryFetches(new EntryReader(disk, _files, _logId, _positions));
    }

    /// <summary>Why the log stopped, or null.</summary>
    public Exception? Failure => Volatile.Read(ref _failure);

    /// <inheritdoc/>
    public long HeldBytesMax => _options.HeldBytesMax;

    public string? RefuseWrites => _space.Refusal ?? _preparer.Refusal;

    /// <inheritdoc cref="GroupCommit.Times"/>
    public LogTimes Times => _commit.Times;

    /// <inheritdoc cref="LogSpace.Disk"/>
    public DiskSpace Disk => _space.Disk;

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
        _fetches.Shell = shell;
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
            // A log that cannot be read back must not be written further.
            if (_fetches.Failure is { } readFailure)
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
    public bool FetchOnce() => _fetches.AnswerOne();

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
        _fetches.Dispose();
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

    /// <summary>What the writers ask to be read.</summary>
    public EntryFetches Fetches => _fetches;

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
            _fetches.Dispose();
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

/// <summary>
/// Refuses writes when the log has reached its limit or its disk runs out of space. Owned by the log thread;
/// <see cref="Refusal"/> from any thread.
/// </summary>
internal sealed class LogSpace(IDisk disk, string directory, SegmentedLogOptions options, Action<ReportLine> report)
{
    private string? _pastLimit;
    private string? _diskLow;
    private long _freeBytes;
    private long _totalBytes;

    /// <summary>The space on the disk when it was last looked at, about a second ago.</summary>
    public DiskSpace Disk => new(Volatile.Read(ref _freeBytes), Volatile.Read(ref _totalBytes));

    /// <summary>Why writes are refused, or null.</summary>
    public string? Refusal => Volatile.Read(ref _pastLimit) ?? Volatile.Read(ref _diskLow);

    /// <summary>Compares the log's size with its limit.</summary>
    public void CheckLimit(long bytes)
    {
        bool past = bytes >= options.LogLimitBytes;
        if (past != (_pastLimit is not null))
        {
            long limitMiB = options.LogLimitBytes >> 20;
            Refuse(ref _pastLimit, past
                ? Line(
                    $"The log in {directory} has reached its limit of {limitMiB} MiB (--log-limit), so writes are "
                    + $"refused; reads go on.")
                : null);
        }
    }

    /// <summary>Compares the free space on the disk with its limit.</summary>
    public void CheckDisk()
    {
        try
        {
            DiskSpace space = disk.Space(directory);
            Volatile.Write(ref _freeBytes, space.Free);
            Volatile.Write(ref _totalBytes, space.Total);
            bool low = space.Free < space.Total / 100 * options.FreePercentMin;
            (long freeMiB, long totalMiB, int percent) = (space.Free >> 20, space.Total >> 20, options.FreePercentMin);
            Refuse(ref _diskLow, low
                ? Line(
                    $"The disk of {directory} has {freeMiB} MiB of {totalMiB} MiB free, less than {percent} %, so "
                    + $"writes are refused until there is room; reads go on.")
                : null);
        }
        catch (IOException error)
        {
            report($"Log: the free room on the disk of {directory} cannot be read: {error.Message}");
        }
    }

    private static ReportLine Line(ReportLine line) => line;

    private void Refuse(ref string? reason, ReportLine? line)
    {
        if (line is not null && reason is null)
        {
            report(line);
        }

        Volatile.Write(ref reason, line?.ToString());
    }
}

/// <summary>A request to read entries for a follower.</summary>
internal readonly record struct FetchRequest(
    ILogSink Sink, GroupId Group, NodeId Follower, LogIndex First, int BytesMax);

/// <summary>
/// Requests to read entries, and the reading thread's step that answers them. Bounded by the groups' cores: one request
/// per follower at a time. <see cref="Put"/> and <see cref="Failure"/> from any thread, the rest on the reading thread.
/// </summary>
internal sealed class EntryFetches(EntryReader reader) : IDisposable
{
    private readonly Lock _lock = new();
    private readonly Queue<FetchRequest> _waiting = new();
    private Exception? _failure;

    /// <summary>Schedules the steps; null before it is attached.</summary>
    public ILogShell? Shell { get; set; }

    /// <summary>Why the log could not be read back; null while it can.</summary>
    public Exception? Failure => Volatile.Read(ref _failure);

    public void Put(in FetchRequest request)
    {
        lock (_lock)
        {
            _waiting.Enqueue(request);
        }

        Shell?.WakeFetch();
    }

    /// <summary>
    /// Answers one request. False when there was none. After a failure the answer is empty, and
    /// <see cref="Failure"/> is set.
    /// </summary>
    public bool AnswerOne()
    {
        if (!TryTake(out FetchRequest request))
        {
            reader.CloseDropped();
            return false;
        }

        ByteBuffer entries = ByteBuffer.Rent();
        try
        {
            reader.Read(request.Group, request.First, request.BytesMax, entries);
        }
        catch (Exception error) when (error is IOException or LogDamagedException)
        {
            entries.Length = 0;
            Volatile.Write(
                ref _failure,
                error as LogDamagedException
                    ?? (Exception)new LogFailedException(
                        $"Reading the log failed: {error.Message} The node stops.", error));
            Shell?.WakeCommit();
        }

        request.Sink.Fetched(request.Group, request.Follower, request.First, entries);
        return true;
    }

    /// <inheritdoc/>
    public void Dispose() => reader.Dispose();

    private bool TryTake(out FetchRequest request)
    {
        lock (_lock)
        {
            return _waiting.TryDequeue(out request);
        }
    }
}
