using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Verification;

namespace Kahuna.Benchmark.Workloads;

/// <summary>
/// A workload in one run: what its workers share. Owned by the run: prepared once, then asked for one requester per
/// worker, verified after the load. Thread-safe in between.
/// </summary>
internal abstract class WorkloadRun(Workload workload, BenchOptions options)
{
    /// <summary>The operations that a report has rows for, in their order.</summary>
    public IReadOnlyList<string> Rows => workload.Rows;

    public KeySpace Keys { get; } = new(options.KeySpace, options.Buckets);

    public PayloadPool Payloads { get; } = new(options.ValueSize, options.Seed);

    /// <summary>Makes what the requests need besides keys, or throws <see cref="TargetException"/>.</summary>
    public virtual Task PrepareAsync(ITarget target, CancellationToken cancellationToken) => Task.CompletedTask;

    /// <summary>The requests of one worker, sent over <paramref name="session"/>. Any thread.</summary>
    public abstract Requester Open(ITargetSession session);

    /// <summary>After the load: what <c>--verify</c> has shown; null without.</summary>
    public virtual Task<IFindings?> VerifyAsync(ITarget target) => Task.FromResult<IFindings?>(null);
}
