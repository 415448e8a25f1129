using Kahuna.Benchmark.Pacing;
using Kahuna.Benchmark.Recording;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Workloads;

namespace Kahuna.Benchmark.Running;

/// <summary>
/// One worker: sends a request, waits for its answer, records, goes on. Its loop allocates nothing of its own. Runs on whatever thread
/// completes its request; never on two at once.
/// </summary>
internal sealed class Worker
{
    /// <summary>A request that fails faster than this was refused at the door.</summary>
    private static readonly long s_fastFailure = Ticks.From(TimeSpan.FromMilliseconds(1));

    /// <summary>Pause after such a failure: a closed loop would otherwise take all CPU from a cluster that is trying to come back.</summary>
    private static readonly TimeSpan s_pauseAfterFailure = TimeSpan.FromMilliseconds(10);

    private readonly ITarget _target;
    private readonly ITargetSession _session;
    private readonly RequestPlan _plan;
    private readonly FailureLog _failures;
    private readonly LoadWindow _window;
    private readonly long _seed;
    private readonly int _number;

    public Worker(LoadShape load, LoadWindow window, int number)
    {
        _target = load.Target;
        _session = load.Target.OpenSession(number);
        _plan = load.Plan;
        _failures = load.Failures;
        _window = window;
        _seed = load.Options.Seed;
        _number = number;
    }

    public WorkerRecorder Recorder { get; } = new();

    /// <summary>Sends one request after the other until the window ends.</summary>
    public async Task RunClosedAsync()
    {
        SplitMix random = new(_seed, _number);
        long start = Ticks.Now;
        while (start < _window.End)
        {
            Operation operation = _plan.Next(ref random, out string key, out ReadOnlyMemory<byte> payload);
            OperationResult result = await SendAsync(operation, key, payload).ConfigureAwait(false);
            long end = Ticks.Now;
            if (_window.Records(start))
            {
                Recorder.Record(operation, result, _session.MeasuredFrom ?? start, _session.MeasuredTo ?? end);
            }

            if (result >= OperationResult.Timeout && end - start < s_fastFailure)
            {
                await Task.Delay(s_pauseAfterFailure).ConfigureAwait(false);
                end = Ticks.Now;
            }

            // The next request starts where this one ended: the worker's own work counts into the latency instead of vanishing.
            start = end;
        }
    }

    /// <summary>Sends the requests that the gate hands out; their latency counts from the time at which they were due.</summary>
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
            Operation operation = _plan.Next(ref random, out string key, out ReadOnlyMemory<byte> payload);
            OperationResult result = await SendAsync(operation, key, payload).ConfigureAwait(false);
            long due = schedule.DueAt(number);
            if (_window.Records(due))
            {
                Recorder.Record(operation, result, due, Ticks.Now);
            }
        }
    }

    [System.Runtime.CompilerServices.AsyncMethodBuilder(typeof(System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<OperationResult> SendAsync(Operation operation, string key, ReadOnlyMemory<byte> payload)
    {
        Recorder.Start();
        try
        {
            return operation switch
            {
                Operation.Get => await _session.GetAsync(key).ConfigureAwait(false),
                Operation.Set => await _session.SetAsync(key, payload).ConfigureAwait(false),
                Operation.Lock => await _session.LockAsync(key).ConfigureAwait(false),
                Operation.Handover => await _session.HandoverAsync(key).ConfigureAwait(false),
                _ => await _session.NextAsync(key).ConfigureAwait(false),
            };
        }
        catch (Exception failure)
        {
            _failures.Add(failure);
            return _target.IsTimeout(failure) ? OperationResult.Timeout : OperationResult.Error;
        }
        finally
        {
            Recorder.Finish();
        }
    }
}
