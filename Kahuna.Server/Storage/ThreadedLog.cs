using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
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

/// <summary>
/// Wakes one waiting thread. Set by any thread; sets between two waits count once. A waiter blocks in the kernel at
/// once, without spinning. One thread waits at a time.
/// </summary>
internal abstract class ThreadSignal
{
    /// <summary>A signal of the kind that costs least on this system.</summary>
    public static ThreadSignal New() => FutexSignal.IsAvailable ? new FutexSignal() : new MonitorSignal();

    /// <summary>Ends the present wait, or the next one.</summary>
    public abstract void Set();

    /// <summary>Waits until it is set; false when it was not within the timeout.</summary>
    public abstract bool Wait(TimeSpan timeout);
}

/// <summary>The same everywhere.</summary>
internal sealed class MonitorSignal : ThreadSignal
{
    private readonly object _gate = new();
    private bool _isSet;
    private bool _isAwaited;

    public override void Set()
    {
        lock (_gate)
        {
            _isSet = true;
            if (_isAwaited)
            {
                Monitor.Pulse(_gate);
            }
        }
    }

    public override bool Wait(TimeSpan timeout)
    {
        lock (_gate)
        {
            if (!_isSet)
            {
                _isAwaited = true;
                Monitor.Wait(_gate, timeout);
                _isAwaited = false;
            }

            bool wasSet = _isSet;
            _isSet = false;
            return wasSet;
        }
    }
}

/// <summary>
/// One word of memory on which the thread waits in the kernel (futex(2)): a wake and a wait are one system call each,
/// and the waking thread holds no lock that the woken one needs. With a monitor they were two to three each. Linux on
/// x64 and arm64.
/// </summary>
internal sealed unsafe partial class FutexSignal : ThreadSignal
{
    private const int Idle = 0;
    private const int IsSet = 1;
    private const int Awaited = 2;

    private const int WaitPrivate = 128;
    private const int WakePrivate = 129;
    private const int NotThatValue = 11;
    private const int TimedOut = 110;

    /// <summary>The word is alone on its cache lines: 32 words before it and behind it.</summary>
    private const int Words = 65;

    private static readonly long s_call = RuntimeInformation.ProcessArchitecture == Architecture.X64 ? 202 : 98;

    private readonly int[] _words = GC.AllocateArray<int>(Words, pinned: true);
    private readonly int* _word;

    public FutexSignal() => _word = (int*)Unsafe.AsPointer(ref _words[Words / 2]);

    /// <summary>The system has the call, and lets this process use it.</summary>
    public static bool IsAvailable { get; } = CanWait();

    public override void Set()
    {
        if (Interlocked.Exchange(ref *_word, IsSet) == Awaited)
        {
            _ = Wake(s_call, _word, WakePrivate, 1);
        }
    }

    public override bool Wait(TimeSpan timeout)
    {
        if (Interlocked.CompareExchange(ref *_word, Awaited, Idle) == Idle)
        {
            TimeSpec span = new() { Seconds = timeout.Ticks / TimeSpan.TicksPerSecond };
            span.Nanoseconds = (timeout.Ticks - (span.Seconds * TimeSpan.TicksPerSecond)) * TimeSpan.NanosecondsPerTick;
            TimeSpec* limit = timeout == Timeout.InfiniteTimeSpan ? null : &span;

            // A signal of the operating system, or a wake without reason, ends the call early.
            while (Volatile.Read(ref *_word) == Awaited
                && (Sleep(s_call, _word, WaitPrivate, Awaited, limit) == 0
                    || Marshal.GetLastPInvokeError() != TimedOut))
            {
            }
        }

        return Interlocked.Exchange(ref *_word, Idle) == IsSet;
    }

    private static bool CanWait()
    {
        if (!OperatingSystem.IsLinux()
            || RuntimeInformation.ProcessArchitecture is not (Architecture.X64 or Architecture.Arm64))
        {
            return false;
        }

        int word = Idle;
        try
        {
            return Sleep(s_call, &word, WaitPrivate, Awaited, null) != 0
                && Marshal.GetLastPInvokeError() == NotThatValue;
        }
        catch (Exception missing) when (missing is DllNotFoundException or EntryPointNotFoundException)
        {
            return false;
        }
    }

    [LibraryImport("libc", EntryPoint = "syscall", SetLastError = true)]
    private static partial long Sleep(long call, int* word, int operation, int value, TimeSpec* timeout);

    /// <summary>Never blocks.</summary>
    [LibraryImport("libc", EntryPoint = "syscall")]
    [SuppressGCTransition]
    private static partial long Wake(long call, int* word, int operation, int count);

    [StructLayout(LayoutKind.Sequential)]
    private struct TimeSpec
    {
        public long Seconds;
        public long Nanoseconds;
    }
}
