using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage;

/// <summary>
/// Runs a <see cref="SegmentedLog"/> with one thread each for writing, preparing segments and reading. Owned by the
/// host, which disposes it after the loops have stopped; everything submitted until then is still written. Any thread.
/// </summary>
internal sealed class ThreadedLog : ILogStore, ILogShell
{
    /// <summary>Idle time after which the last batch gets its mark, and the interval of disk space checks.</summary>
    private static readonly TimeSpan s_idle = TimeSpan.FromSeconds(1);

    private readonly SegmentedLog _log;
    private readonly ThreadSignal _commitSignal = ThreadSignal.New();
    private readonly ThreadSignal _prepareSignal = ThreadSignal.New();
    private readonly ThreadSignal _fetchSignal = ThreadSignal.New();
    private readonly List<Task> _threads = [];
    private readonly IFatalErrors _fatal;
    private volatile bool _stopping;

    private ThreadedLog(SegmentedLog log, IFatalErrors fatal)
    {
        _log = log;
        _fatal = fatal;
    }

    /// <inheritdoc/>
    public long HeldBytesMax => _log.HeldBytesMax;

    public string? RefuseWrites => _log.RefuseWrites;

    /// <inheritdoc cref="SegmentedLog.Bytes"/>
    public long Bytes => _log.Bytes;

    /// <inheritdoc cref="SegmentedLog.Segments"/>
    public int Segments => _log.Segments;

    /// <inheritdoc cref="GroupCommit.Times"/>
    public LogTimes Times => _log.Times;

    /// <inheritdoc cref="LogSpace.Disk"/>
    public DiskSpace Disk => _log.Disk;

    /// <summary>Why the log stopped, or null.</summary>
    public Exception? Failure => _log.Failure;

    /// <summary>
    /// Opens the log of a data directory on the local disk and starts its threads. Errors are those of
    /// <see cref="SegmentedLog.Open"/>.
    /// </summary>
    /// <param name="dataDirectory">The node's data directory.</param>
    /// <param name="options">Sizes and limits.</param>
    /// <param name="fatal">Receives unexpected exceptions of the log's threads. Disk errors are expected: they end the
    /// log (<see cref="Failure"/>).</param>
    /// <param name="report">Receives lines for the operator.</param>
    public static ThreadedLog Open(
        string dataDirectory, SegmentedLogOptions options, IFatalErrors fatal, Action<ReportLine>? report = null) =>
        Start(SegmentedLog.Open(dataDirectory, options, LocalDisk.Shared, report), fatal);

    /// <summary>Starts the threads of a log. <paramref name="fatal"/> receives their unexpected exceptions.</summary>
    public static ThreadedLog Start(SegmentedLog log, IFatalErrors fatal)
    {
        ThreadedLog threaded = new(log, fatal);
        log.Attach(threaded);
        threaded.StartThread("log", threaded.RunCommit);
        threaded.StartThread("log-prepare", threaded.RunPrepare);
        threaded.StartThread("log-read", threaded.RunFetch);
        return threaded;
    }

    /// <inheritdoc/>
    public RecoveredGroup Recovered(GroupId group) => _log.Recovered(group);

    /// <inheritdoc/>
    public void Replay(GroupId group, LogIndex first, LogIndex last, Action<LogIndex, ReadOnlyMemory<byte>> visit) =>
        _log.Replay(group, first, last, visit);

    /// <inheritdoc cref="BatchQueue.LetGo"/>
    public void LetGo() => _log.LetGo();

    /// <inheritdoc/>
    public ILogWriter OpenWriter(ILogSink sink) => _log.OpenWriter(sink);

    /// <inheritdoc/>
    public void Release(GroupId group, LogIndex index) => _log.Release(group, index);

    /// <inheritdoc/>
    public void Abandon(GroupId group) => _log.Abandon(group);

    /// <inheritdoc/>
    public LogIndex StartOf(GroupId group) => _log.StartOf(group);

    /// <inheritdoc/>
    public long BytesSince(GroupId group, LogIndex index) => _log.BytesSince(group, index);

    public void WakeCommit() => _commitSignal.Set();

    public void WakePrepare() => _prepareSignal.Set();

    public void WakeFetch() => _fetchSignal.Set();

    /// <inheritdoc/>
    public async ValueTask DisposeAsync()
    {
        _stopping = true;
        _commitSignal.Set();
        _prepareSignal.Set();
        _fetchSignal.Set();
        await Task.WhenAll(_threads).ConfigureAwait(false);
        await _log.DisposeAsync().ConfigureAwait(false);
    }

    private void StartThread(string name, Action run)
    {
        TaskCompletionSource ended = new(TaskCreationOptions.RunContinuationsAsynchronously);
        _threads.Add(ended.Task);
        Thread thread = new(() =>
        {
            try
            {
                run();
            }
            catch (Exception error)
            {
                _fatal.Raise($"the thread {name}", error);
            }

            ended.SetResult();
        })
        {
            IsBackground = true,
            Name = name,
        };
        thread.Start();
    }

    private void RunCommit()
    {
        long idleMs = (long)s_idle.TotalMilliseconds;
        long checkedAt = Environment.TickCount64;
        long workedAt = checkedAt;
        while (!_stopping)
        {
            long now = Environment.TickCount64;
            if (_log.CommitOnce())
            {
                workedAt = now;
            }
            else
            {
                if (now - workedAt >= idleMs)
                {
                    _log.MarkIdle();
                }

                _commitSignal.Wait(s_idle);
            }

            if (now - checkedAt >= idleMs)
            {
                checkedAt = now;
                _log.CheckSpace();
            }
        }

        while (_log.CommitOnce())
        {
        }
    }

    private void RunPrepare()
    {
        LocalDisk.LowerThreadPriority();
        while (!_stopping)
        {
            _log.PrepareOnce();
            _prepareSignal.Wait(Timeout.InfiniteTimeSpan);
        }
    }

    private void RunFetch()
    {
        while (!_stopping)
        {
            if (!_log.FetchOnce())
            {
                _fetchSignal.Wait(Timeout.InfiniteTimeSpan);
            }
        }
    }
}
