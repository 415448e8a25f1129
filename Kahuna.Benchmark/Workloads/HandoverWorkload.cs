using System.Runtime.CompilerServices;
using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Timing;

namespace Kahuna.Benchmark.Workloads;

/// <summary>
/// Waits for one lock that all workers want. Measured from the moment at which its holder begins to release it to the
/// moment at which the next worker holds it. Stateless.
/// </summary>
internal sealed class HandoverWorkload : Workload
{
    private const string LockName = "bench:lock:0";
    private static readonly TimeSpan s_lease = TimeSpan.FromSeconds(10);
    private static readonly TimeSpan s_wait = TimeSpan.FromMinutes(10);

    public override string Name => "handover";

    public override IReadOnlyList<string> Rows { get; } = ["handover"];

    public override WorkloadRun Begin(BenchOptions options) => new Run(this, options);

    private sealed class Run(Workload workload, BenchOptions options) : WorkloadRun(workload, options)
    {
        private long _releasedAt;

        public override Requester Open(ITargetSession session) => new Handovers(this, (ILockSession)session);

        /// <summary>The holder begins to release the lock. The lock itself lets one worker in at a time.</summary>
        public void Releases(long ticks) => Volatile.Write(ref _releasedAt, ticks);

        /// <summary>When the previous holder began to release the lock; 0 when there was none.</summary>
        public long TakeReleased() => Interlocked.Exchange(ref _releasedAt, 0);
    }

    private sealed class Handovers(Run run, ILockSession session) : Requester
    {
        [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
        public override async ValueTask<OperationResult> SendAsync(Draw draw)
        {
            LockGrant grant = await session.AcquireAsync(LockName, s_lease, s_wait).ConfigureAwait(false);
            long released = run.TakeReleased();
            MeasuredTo = grant.GrantedAt;
            MeasuredFrom = released == 0 ? MeasuredTo : released;
            run.Releases(Ticks.Now);
            await session.ReleaseAsync().ConfigureAwait(false);

            // The first holder takes the lock over from nobody.
            return released == 0 ? OperationResult.Miss : OperationResult.Success;
        }
    }
}
