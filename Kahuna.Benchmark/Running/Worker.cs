using Kahuna.Benchmark.Pacing;
using Kahuna.Benchmark.Recording;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Timing;
using Kahuna.Benchmark.Workloads;

namespace Kahuna.Benchmark.Running;

/// <summary>
/// One worker: sends a request, waits for its answer, records, goes on. Its loops allocate nothing of their own, and
/// each awaits its request itself: an asynchronous method between them would add a fifth to their cost. Runs on
/// whatever thread completes its request; never on two at once.
/// </summary>
internal sealed class Worker
{
    /// <summary>A request that fails faster than this was refused at the door.</summary>
    private static readonly long s_fastFailure = Ticks.From(TimeSpan.FromMilliseconds(1));

    /// <summary>
    /// Pause after such a failure: a closed loop would otherwise take all CPU from a cluster that is trying to come
    /// back.
    /// </summary>
    private static readonly TimeSpan s_pauseAfterFailure = TimeSpan.FromMilliseconds(10);

    private readonly ITargetSession _session;
    private readonly Requester _requester;
    private readonly FailureLog _failures;
    private readonly LoadWindow _window;
    private readonly long _seed;
    private readonly int _number;

    public Worker(LoadShape load, LoadWindow window, int number)
    {
        _session = load.Target.OpenSession(number);
        _requester = load.Workload.Open(_session);
        _failures = load.Failures;
        _window = window;
        _seed = load.Options.Seed;
        _number = number;
        Recorder = new WorkerRecorder(load.Workload.Rows.Count);
    }

    public WorkerRecorder Recorder { get; }

    /// <summary>Sends one request after the other until the window ends.</summary>
    public async Task RunClosedAsync()
    {
        SplitMix random = new(_seed, _number);
        long start = Ticks.Now;
        while (start < _window.End)
        {
            OperationResult result;
            Recorder.Start();
            try
            {
                result = await _requester.SendAsync(Draw.From(ref random)).ConfigureAwait(false);
            }
            catch (Exception failure)
            {
                result = Failed(failure);
            }

            Recorder.Finish();
            long end = Ticks.Now;
            if (_window.Records(start))
            {
                Recorder.Record(_requester.Row, result, _requester.MeasuredFrom ?? start, _requester.MeasuredTo ?? end);
            }

            if (result >= OperationResult.Timeout && end - start < s_fastFailure)
            {
                await Task.Delay(s_pauseAfterFailure).ConfigureAwait(false);
                end = Ticks.Now;
            }

            // The next request starts where this one ended: the worker's own work counts into the latency instead of
            // vanishing.
            start = end;
        }
    }

    /// <summary>
    /// Sends the requests that the gate hands out; their latency counts from the time at which they were due.
    /// </summary>
    public async Task RunOpenAsync(PermitGate gate, PaceSchedule schedule)
    {
        PermitWaiter waiter = new();
        while (true)
        {
            long number = await gate.ClaimAsync(waiter).ConfigureAwait(false);
            if (number == PermitGate.Finished)
            {
                return;
            }

            // Drawn by the request's number: the load is the same whichever worker sends it.
            SplitMix random = new(_seed, number);
            OperationResult result;
            Recorder.Start();
            try
            {
                result = await _requester.SendAsync(Draw.From(ref random)).ConfigureAwait(false);
            }
            catch (Exception failure)
            {
                result = Failed(failure);
            }

            Recorder.Finish();
            long due = schedule.DueAt(number);
            if (_window.Records(due))
            {
                Recorder.Record(_requester.Row, result, due, Ticks.Now);
            }
        }
    }

    private OperationResult Failed(Exception failure)
    {
        _failures.Add(failure);
        return _session.IsTimeout(failure) ? OperationResult.Timeout : OperationResult.Error;
    }
}
