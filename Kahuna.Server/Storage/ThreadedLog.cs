using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Server.Storage;

/// <summary>
/// The log as the node uses it: a <see cref="SegmentedLog"/> on the real disk, with a thread each for writing, preparing segments and
/// reading. Owned by the host, which disposes it after the loops have stopped: what was submitted until then is still written.
/// </summary>
internal sealed class ThreadedLog : ILogStore, ILogShell
{
    /// <summary>How long nothing must be submitted until the last batch gets its mark, and how often the disk's room is looked at.</summary>
    private static readonly TimeSpan s_idle = TimeSpan.FromSeconds(1);

    private readonly SegmentedLog _log;
    private readonly Bell _commitBell = new();
    private readonly Bell _prepareBell = new();
    private readonly Bell _fetchBell = new();
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

    /// <summary>Why the log stopped, or null.</summary>
    public Exception? Failure => _log.Failure;

    /// <summary>Opens the log of a data directory on the real disk and starts its threads. Errors are those of <see cref="SegmentedLog.Open"/>.</summary>
    /// <param name="dataDirectory">The node's data directory.</param>
    /// <param name="options">Sizes and limits.</param>
    /// <param name="fatal">Is told of what a thread of the log throws. An error of the disk is not that: it ends the log (<see cref="Failure"/>).</param>
    /// <param name="report">Gets a line for each thing that an operator may want to know.</param>
    public static ThreadedLog Open(string dataDirectory, SegmentedLogOptions options, IFatalErrors fatal, Action<ReportLine>? report = null) =>
        Start(SegmentedLog.Open(dataDirectory, options, LocalDisk.Shared, report), fatal);

    /// <summary>Gives a log its threads. <paramref name="fatal"/> is told of what one of them throws.</summary>
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

    public void WakeCommit() => _commitBell.Ring();

    public void WakePrepare() => _prepareBell.Ring();

    public void WakeFetch() => _fetchBell.Ring();

    /// <inheritdoc/>
    public async ValueTask DisposeAsync()
    {
        _stopping = true;
        _commitBell.Ring();
        _prepareBell.Ring();
        _fetchBell.Ring();
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

                _commitBell.Wait(s_idle);
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
            _prepareBell.Wait(Timeout.InfiniteTimeSpan);
        }
    }

    private void RunFetch()
    {
        while (!_stopping)
        {
            if (!_log.FetchOnce())
            {
                _fetchBell.Wait(Timeout.InfiniteTimeSpan);
            }
        }
    }
}
