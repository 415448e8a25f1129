using System.Runtime.CompilerServices;
using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Timing;
using Kahuna.Benchmark.Verification;

namespace Kahuna.Benchmark.Workloads;

/// <summary>
/// Acquires a random lock without waiting and releases it; a lock that another worker holds is a miss. The latency
/// covers both calls. Stateless.
/// </summary>
internal sealed class LockWorkload : Workload
{
    private static readonly TimeSpan s_lease = TimeSpan.FromSeconds(10);

    /// <summary>
    /// With <c>--verify</c> every other lock is kept this long: two holders can be seen only while there is a holder.
    /// </summary>
    private static readonly TimeSpan s_hold = TimeSpan.FromMilliseconds(1);

    public override string Name => "lock";

    public override IReadOnlyList<string> Rows { get; } = ["lock"];

    public override string Promise => "one holder at a time and growing tokens";

    public override WorkloadRun Begin(BenchOptions options) => new Run(this, options);

    private sealed class Run(Workload workload, BenchOptions options) : WorkloadRun(workload, options)
    {
        private readonly LockLedger? _ledger = options.IsVerified ? new LockLedger() : null;

        public override Requester Open(ITargetSession session) => new Locks(Keys, (ILockSession)session, _ledger);

        public override Task<IFindings?> VerifyAsync(ITarget target) => Task.FromResult<IFindings?>(_ledger?.Check());
    }

    private sealed class Locks(KeySpace keys, ILockSession session, LockLedger? ledger) : Requester
    {
        private readonly LockLedger.Page? _grants = ledger?.Open();
        private bool _holds;

        public override ValueTask<OperationResult> SendAsync(Draw draw) => AcquireAndReleaseAsync(keys.Choose(draw));

        [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
        private async ValueTask<OperationResult> AcquireAndReleaseAsync(string name)
        {
            long start = Ticks.Now;
            _grants?.Begin();
            LockGrant? granted;
            try
            {
                granted = await session.TryAcquireAsync(name, s_lease).ConfigureAwait(false);
            }
            catch (Exception failure) when (session.DidNotHappen(failure))
            {
                _grants?.GotNothing();
                throw;
            }

            if (granted is not { } grant)
            {
                _grants?.GotNothing();
                return OperationResult.Miss;
            }

            if (_grants is not null)
            {
                _holds = !_holds;
                if (_holds)
                {
                    await Task.Delay(s_hold).ConfigureAwait(false);
                }

                long until = Math.Min(Ticks.Now, grant.HeldUntil);
                _grants.Got(new LockLedger.Entry(name, grant.Token, start, grant.GrantedAt, until));
            }

            if (!await session.ReleaseAsync().ConfigureAwait(false) && Ticks.Now < grant.HeldUntil)
            {
                ledger?.LostEarly();
            }

            return OperationResult.Success;
        }
    }
}
