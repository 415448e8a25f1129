using System.Globalization;
using Kahuna.Benchmark.Recording;
using Kahuna.Benchmark.Running;
using Kahuna.Benchmark.Timing;

namespace Kahuna.Benchmark.Reporting;

/// <summary>
/// The line that shows the load once a second on a terminal, overwritten in place. Reads the workers' counters without
/// stopping them. Has a thread of its own; owned by the run.
/// </summary>
internal sealed class LiveLine : IDisposable
{
    private const string ClearLine = "\r\u001b[K";
    private static readonly TimeSpan s_interval = TimeSpan.FromSeconds(1);

    private readonly TextWriter _writer;
    private readonly LoadRun _run;
    private readonly IReadOnlyList<WorkerRecorder> _recorders;
    private readonly ManualResetEventSlim _stop = new();
    private readonly Thread _thread;
    private long[] _before = [];
    private long _finishedBefore;
    private long _timeBefore = Ticks.Now;

    public LiveLine(TextWriter writer, LoadRun run)
    {
        _writer = writer;
        _run = run;
        _recorders = run.Recorders;
        _thread = new Thread(Run) { IsBackground = true, Name = "kahuna-bench live line" };
        _thread.Start();
    }

    public void Dispose()
    {
        _stop.Set();
        _thread.Join();
        _stop.Dispose();
        _writer.Write(ClearLine);
        _writer.Flush();
    }

    private void Run()
    {
        while (!_stop.Wait(s_interval))
        {
            _writer.Write(ClearLine + Compose());
            _writer.Flush();
        }
    }

    private string Compose()
    {
        long now = Ticks.Now;
        long started = 0;
        long finished = 0;
        foreach (WorkerRecorder recorder in _recorders)
        {
            // Read in this order a request is never seen finished before it is seen started.
            finished += recorder.Finished;
            started += recorder.Started;
        }

        double rate = (finished - _finishedBefore) / Math.Max(Ticks.ToSeconds(now - _timeBefore), 0.001);
        _finishedBefore = finished;
        _timeBefore = now;
        bool isWarmup = now < _run.Window.MeasureFrom;
        double elapsed = Ticks.ToSeconds(now - (isWarmup ? _run.Window.Start : _run.Window.MeasureFrom));
        string p99 = isWarmup
            ? "warmup"
            : string.Create(CultureInfo.InvariantCulture, $"p99 {PercentileSinceLast() / 1000.0:F3} ms");
        string backlog = _run.Backlog is var waiting and > 0
            ? string.Create(CultureInfo.InvariantCulture, $"   waiting {waiting:N0}")
            : string.Empty;
        return string.Create(
            CultureInfo.InvariantCulture,
            $"{elapsed,4:F0} s   in flight {started - finished:N0}{backlog}   {rate:N0} req/s   {p99}");
    }

    /// <summary>The 99th percentile of what was recorded since the last call, in microseconds.</summary>
    private long PercentileSinceLast()
    {
        long[] sums = new long[_before.Length];
        foreach (WorkerRecorder recorder in _recorders)
        {
            foreach (OperationTally tally in recorder.Tallies)
            {
                AddTo(ref sums, tally.Latencies.Counts);
            }
        }

        LatencyHistogram second = new();
        for (int i = 0; i < sums.Length; i++)
        {
            long added = sums[i] - (i < _before.Length ? _before[i] : 0);
            if (added > 0)
            {
                second.Record(BucketLayout.HighestAt(i), added);
            }
        }

        _before = sums;
        return second.ValueAtPercentile(99);
    }

    private static void AddTo(ref long[] sums, ReadOnlySpan<uint> counts)
    {
        if (counts.Length > sums.Length)
        {
            Array.Resize(ref sums, counts.Length);
        }

        for (int i = 0; i < counts.Length; i++)
        {
            sums[i] += counts[i];
        }
    }
}
