using BenchmarkDotNet.Attributes;
using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Pacing;
using Kahuna.Benchmark.Recording;
using Kahuna.Benchmark.Running;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Timing;
using Kahuna.Benchmark.Workloads;

namespace Kahuna.Benchmark.Micro;

/// <summary>
/// What the generator itself costs per request: one worker's loop against a target that answers at once, in a closed
/// and in an open loop. Run by BenchmarkDotNet.
/// </summary>
[MemoryDiagnoser]
public class GeneratorBenchmark
{
    private const int Requests = 10_000;
    private readonly InstantTarget _target = new();
    private LoadShape _load = null!;

    [GlobalSetup]
    public void Setup()
    {
        BenchOptions options =
            new() { Source = ConnectionSource.Parse("embedded", TargetKind.Kahuna, out _)!, Seed = 1, Concurrency = 1 };
        _load = new LoadShape(options, _target, new MixedWorkload().Begin(options), new FailureLog());
    }

    /// <summary>Choosing, timing, sending and recording one request.</summary>
    [Benchmark(OperationsPerInvoke = Requests)]
    public Task ClosedLoop()
    {
        LoadWindow window = new(Ticks.Now, TimeSpan.Zero, TimeSpan.FromHours(1));
        _target.Reset(() => window.StopAt(Ticks.Now));
        return new Worker(_load, window, 0).RunClosedAsync();
    }

    /// <summary>The same with requests that a gate hands out.</summary>
    [Benchmark(OperationsPerInvoke = Requests)]
    public Task OpenLoop()
    {
        LoadWindow window = new(Ticks.Now, TimeSpan.Zero, TimeSpan.FromHours(1));
        _target.Reset(static () => { });
        PermitGate gate = new(1);
        gate.Release(Requests);
        gate.Close();
        return new Worker(_load, window, 0).RunOpenAsync(
            gate, new PaceSchedule(window.Start, 1_000_000, Ticks.PerSecond));
    }

    /// <summary>Answers at once and says when it has answered enough.</summary>
    private sealed class InstantTarget : ITarget, IKeyValueSession
    {
        private int _left;
        private Action _done = static () => { };

        public void Reset(Action done)
        {
            _left = Requests;
            _done = done;
        }

        public Task<TargetDescription> ConnectAsync(CancellationToken cancellationToken) =>
            Task.FromResult(new TargetDescription("none", "0", []));

        public ITargetSession OpenSession(int worker) => this;

        public bool IsTimeout(Exception failure) => false;

        public ValueTask<OperationResult> SetAsync(string key, ReadOnlyMemory<byte> value) => Answer();

        public ValueTask<OperationResult> GetAsync(string key) => Answer();

        public ValueTask DisposeAsync() => ValueTask.CompletedTask;

        private ValueTask<OperationResult> Answer()
        {
            if (--_left == 0)
            {
                _done();
            }

            return new ValueTask<OperationResult>(OperationResult.Success);
        }
    }
}
