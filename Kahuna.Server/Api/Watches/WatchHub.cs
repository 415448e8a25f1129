using System.Collections.Concurrent;
using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Api.Watches;

/// <summary>
/// All watch streams of a node. Runs the ones that have news, a few at a time, and requests the progress of each once a
/// second. Any thread.
/// </summary>
/// <param name="logs">The node's change logs.</param>
/// <param name="now">The node's time.</param>
/// <param name="room">The node's budget for unsent replies.</param>
internal sealed class WatchHub(ChangeLogs logs, Func<NodeTime> now, ReplyRoom room) : IDisposable
{
    /// <summary>Each stream is told its progress once in this time.</summary>
    private const int ProgressMs = 1_000;

    /// <summary>Parts of that time, so that not all streams are woken at once.</summary>
    private const int Parts = 20;

    private readonly Lock _lock = new();
    private readonly HashSet<WatchPump>[] _pumps =
        [.. Enumerable.Range(0, Parts).Select(static _ => new HashSet<WatchPump>())];
    private readonly WatchWorkers _workers = new();
    private readonly WaitingPumps _waiting = new();
    private Timer? _timer;
    private int _joined;
    private int _part;
    private int _tick;

    /// <summary>What all watches take up.</summary>
    public WatchMemory Memory { get; } = new();

    /// <summary>Wakes streams.</summary>
    public WatchDispatcher Dispatcher { get; } = new(logs);

    /// <summary>The budget for unsent replies.</summary>
    public ReplyRoom Room => room;

    /// <summary>The node's time.</summary>
    public NodeTime Now => now();

    /// <summary>Number of open streams.</summary>
    public int Streams => Volatile.Read(ref _joined);

    /// <summary>Bytes of changes that watches can go back to.</summary>
    public long ChangeBytes
    {
        get
        {
            long bytes = 0;
            for (int i = 0; i < logs.Count; i++)
            {
                bytes += logs[i]?.Bytes ?? 0;
            }

            return bytes;
        }
    }

    /// <summary>
    /// Streams that wait for their callers, who do not read, and the longest of these waits in milliseconds.
    /// </summary>
    public (int Streams, long LongestMs) Blocked
    {
        get
        {
            NodeTime present = Now;
            int streams = 0;
            long longest = 0;
            lock (_lock)
            {
                foreach (HashSet<WatchPump> pumps in _pumps)
                {
                    foreach (WatchPump pump in pumps)
                    {
                        if (pump.BlockedAt is { } since)
                        {
                            streams++;
                            longest = Math.Max(longest, present - since);
                        }
                    }
                }
            }

            return (streams, longest);
        }
    }

    /// <summary>The newest point of each group of a durability that this node has applied, by partition.</summary>
    public ChangeLogStatus[] StatusOf(bool isEphemeral) =>
    [
        .. Enumerable.Range(0, logs.Count).Select(index => logs[index])
            .Where(log => log is not null && log.Group.IsEphemeral == isEphemeral)
            .Select(static log => log!.Status),
    ];

    /// <summary>The watches of a new stream.</summary>
    public WatchReader Open(WatchNews news, WatchAccess? access) => new(logs, Memory, news, access);

    /// <summary>A stream begins.</summary>
    public void Join(WatchPump pump, WatchNews news)
    {
        Dispatcher.Join(news);
        lock (_lock)
        {
            _pumps[pump.Part].Add(pump);
            _joined++;
            _timer ??= new Timer(_ => Tick(), null, ProgressMs / Parts, ProgressMs / Parts);
        }
    }

    /// <summary>The part of the streams that a new one belongs to.</summary>
    public int NextPart() => (int)((uint)Interlocked.Increment(ref _part) % Parts);

    /// <summary>A stream has ended.</summary>
    public void Leave(WatchPump pump, WatchNews news)
    {
        Dispatcher.Leave(news);
        lock (_lock)
        {
            _pumps[pump.Part].Remove(pump);
            _joined--;
            if (_joined == 0)
            {
                _timer?.Dispose();
                _timer = null;
            }
        }
    }

    /// <summary>Runs a stream's next step when it is its turn.</summary>
    public void Enqueue(WatchPump pump) => _workers.Enqueue(pump);

    /// <summary>
    /// Wakes a stream a moment from now (<see cref="WatchPace.WaitMs"/>), with all that wait by then.
    /// </summary>
    public void WaitForMore(WatchPump pump) => _waiting.Add(pump);

    /// <summary>Asks no stream for its progress from now on.</summary>
    public void Dispose()
    {
        _waiting.Dispose();
        lock (_lock)
        {
            _timer?.Dispose();
            _timer = null;
        }
    }

    private void Tick()
    {
        int part = (int)((uint)Interlocked.Increment(ref _tick) % Parts);
        lock (_lock)
        {
            foreach (WatchPump pump in _pumps[part])
            {
                pump.RequestProgress();
            }
        }
    }

    /// <summary>Streams that wait a moment for more changes, with one timer for all. Any thread.</summary>
    private sealed class WaitingPumps : IDisposable
    {
        private readonly ConcurrentQueue<WatchPump> _pumps = new();
        private readonly Timer _timer;
        private int _isSet;

        public WaitingPumps() => _timer = new Timer(_ => WakeAll(), null, Timeout.Infinite, Timeout.Infinite);

        public void Add(WatchPump pump)
        {
            _pumps.Enqueue(pump);
            if (Interlocked.Exchange(ref _isSet, 1) == 0)
            {
                _timer.Change(WatchPace.WaitMs, Timeout.Infinite);
            }
        }

        public void Dispose()
        {
            Interlocked.Exchange(ref _isSet, 1);
            _timer.Dispose();
        }

        private void WakeAll()
        {
            Interlocked.Exchange(ref _isSet, 0);
            while (_pumps.TryDequeue(out WatchPump? pump))
            {
                pump.EndWait();
            }
        }
    }

    /// <summary>
    /// Runs streams that have something to do: as many at a time as leave half of the processors to others. Any thread.
    /// </summary>
    private sealed class WatchWorkers : IThreadPoolWorkItem
    {
        /// <summary>Steps of a work item before others of the pool have their turn.</summary>
        private const int StepsMax = 32;

        private static readonly int s_workersMax = Math.Max(1, Environment.ProcessorCount / 2);

        private readonly ConcurrentQueue<WatchPump> _ready = new();
        private int _workers;

        public void Enqueue(WatchPump pump)
        {
            _ready.Enqueue(pump);
            Start();
        }

        public void Execute()
        {
            for (int i = 0; i < StepsMax && _ready.TryDequeue(out WatchPump? pump); i++)
            {
                pump.Run();
            }

            Interlocked.Decrement(ref _workers);
            if (!_ready.IsEmpty)
            {
                Start();
            }
        }

        private void Start()
        {
            int workers = Volatile.Read(ref _workers);
            while (workers < s_workersMax)
            {
                int before = Interlocked.CompareExchange(ref _workers, workers + 1, workers);
                if (before == workers)
                {
                    ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);
                    return;
                }

                workers = before;
            }
        }
    }
}
