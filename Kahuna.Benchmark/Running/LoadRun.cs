using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Pacing;
using Kahuna.Benchmark.Recording;
using Kahuna.Benchmark.Timing;

namespace Kahuna.Benchmark.Running;

/// <summary>
/// Warmup and measurement: one load without a gap between them, of which only what starts in the measurement is
/// recorded. Owned by the run.
/// </summary>
internal sealed class LoadRun
{
    /// <summary>
    /// The target's own timeout ends requests; this much more lets it say so before they are counted as unanswered.
    /// </summary>
    private static readonly TimeSpan s_timeoutGrace = TimeSpan.FromMilliseconds(250);

    /// <summary>How long answers are awaited after Ctrl+C.</summary>
    private static readonly TimeSpan s_interruptedDrainMax = TimeSpan.FromSeconds(1);

    /// <summary>The threads start together this much after the load was built.</summary>
    private static readonly TimeSpan s_lead = TimeSpan.FromMilliseconds(20);

    private readonly LoadShape _load;
    private readonly Worker[] _workers;
    private readonly PermitGate? _gate;
    private readonly Pacer? _pacer;
    private readonly PaceSchedule _schedule;

    public LoadRun(LoadShape load)
    {
        _load = load;
        BenchOptions options = load.Options;
        Window = new LoadWindow(Ticks.Now + Ticks.From(s_lead), options.Warmup, options.Duration);
        _workers = new Worker[options.Concurrency];
        for (int i = 0; i < _workers.Length; i++)
        {
            _workers[i] = new Worker(load, Window, i);
        }

        if (options.Rate > 0)
        {
            _schedule = new PaceSchedule(Window.Start, options.Rate, Ticks.PerSecond);
            _gate = new PermitGate(options.Concurrency);
            _pacer = new Pacer(_gate, _schedule, Window);
        }
    }

    public LoadWindow Window { get; }

    public IReadOnlyList<WorkerRecorder> Recorders => [.. _workers.Select(worker => worker.Recorder)];

    /// <summary>Requests of an open loop that are due and not sent.</summary>
    public long Backlog => _gate?.Backlog ?? 0;

    /// <summary>
    /// Runs the load to its end, or to <paramref name="stop"/>, and merges what the workers recorded.
    /// </summary>
    public async Task<LoadResult> RunAsync(CancellationToken stop)
    {
        using GeneratorWatch watch = new(Window);
        using CancellationTokenRegistration registration = stop.UnsafeRegister(
            static window => ((LoadWindow)window!).StopAt(Ticks.Now), Window);
        _pacer?.Start();
        Task all = Task.WhenAll(_workers.Select(Start));
        await WaitForEndAsync(stop).ConfigureAwait(false);
        _pacer?.Join();
        GeneratorUse use = watch.Stop();

        // The last worker may end on the thread that reads replies; what follows must not hold that up.
        await DrainAsync(all, stop).ConfigureAwait(ConfigureAwaitOptions.ForceYielding);
        long notSent = _gate?.Abandon() ?? 0;
        Window.Seal();
        return Merge(use, notSent, stop.IsCancellationRequested);
    }

    private Task Start(Worker worker) => _gate is null
        ? Task.Run(worker.RunClosedAsync)
        : Task.Run(() => worker.RunOpenAsync(_gate, _schedule));

    private async Task WaitForEndAsync(CancellationToken stop)
    {
        try
        {
            // The timer may fire early by less than a millisecond, hence the loop.
            long left;
            while ((left = Window.End - Ticks.Now) > 0)
            {
                await Task.Delay(TimeSpan.FromMilliseconds(Ticks.ToMilliseconds(left) + 1), stop).ConfigureAwait(false);
            }
        }
        catch (OperationCanceledException)
        {
            // The registration has ended the window.
        }
    }

    private async Task DrainAsync(Task workers, CancellationToken stop)
    {
        TimeSpan longest = _load.Options.Timeout + (_gate is null ? s_timeoutGrace : TimeSpan.Zero);
        try
        {
            await workers.WaitAsync(longest, stop).ConfigureAwait(false);
            return;
        }
        catch (TimeoutException)
        {
            return;
        }
        catch (OperationCanceledException)
        {
            // Interrupted, now or before: answers that are nearly here are still worth a moment.
        }

        await workers.WaitAsync(
            longest < s_interruptedDrainMax ? longest : s_interruptedDrainMax, CancellationToken.None)
            .ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
    }

    private LoadResult Merge(GeneratorUse use, long notSent, bool isInterrupted)
    {
        long lastAnswer = 0;
        long recorded = 0;
        long unanswered = 0;
        foreach (Worker worker in _workers)
        {
            lastAnswer = Math.Max(lastAnswer, worker.Recorder.LastAnswer);
            recorded += worker.Recorder.Recorded;
            unanswered += worker.Recorder.Started - worker.Recorder.Finished;
        }

        // Answers after the end took that time, too: a rate over the planned time alone would count them for free.
        long end = Window.End;
        long elapsed = Math.Max(0, Math.Max(end, lastAnswer) - Window.MeasureFrom);
        return new LoadResult
        {
            ElapsedSec = Ticks.ToSeconds(elapsed),
            DrainSec = elapsed == 0 ? 0 : Ticks.ToSeconds(Math.Max(0, lastAnswer - end)),
            Rows = [.. _load.Workload.Rows.Select((name, row) => OperationTotal.Merge(name, row, Recorders))],
            Use = use,
            Released = _pacer?.ReleasedInMeasurement ?? recorded + unanswered,
            Recorded = recorded,
            NotSent = notSent,
            Unanswered = unanswered,
            PacerLag = _pacer?.Lag,
            IsInterrupted = isInterrupted,
        };
    }
}
