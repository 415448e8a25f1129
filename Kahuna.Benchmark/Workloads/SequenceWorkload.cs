using System.Runtime.CompilerServices;
using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Timing;
using Kahuna.Benchmark.Verification;

namespace Kahuna.Benchmark.Workloads;

/// <summary>Takes the next value of one sequence that all workers share. Stateless.</summary>
internal sealed class SequenceWorkload : Workload
{
    private const string SequenceName = "bench:seq:0";

    public override string Name => "sequence";

    public override IReadOnlyList<string> Rows { get; } = ["sequence"];

    public override string Promise => "no value twice, none missing, all in order";

    public override string? Conflict(BenchOptions options) =>
        options.Durability == BenchOptions.Ephemeral ? "--durability: sequences are persistent only." : null;

    public override WorkloadRun Begin(BenchOptions options) => new Run(this, options);

    private sealed class Run(Workload workload, BenchOptions options) : WorkloadRun(workload, options)
    {
        private readonly SequenceLedger? _ledger = options.IsVerified ? new SequenceLedger() : null;

        public override async Task PrepareAsync(ITarget target, CancellationToken cancellationToken)
        {
            SequenceStanding before;
            try
            {
                ISequenceSession session = (ISequenceSession)target.OpenSession(0);
                before = await session.CreateAsync(SequenceName, cancellationToken).ConfigureAwait(false);
            }
            catch (Exception failure) when (failure is not OperationCanceledException)
            {
                throw new TargetException(
                    $"Seeding failed: the sequence {SequenceName} cannot be created: {failure.Message}", failure);
            }

            if (_ledger is not null)
            {
                _ledger.Before = before.CountsByOne ? before.Latest : throw new TargetException(
                    $"--verify: the sequence {SequenceName} is there already and does not count by ones; "
                    + "delete it first.");
            }
        }

        public override Requester Open(ITargetSession session) =>
            new Values((ISequenceSession)session, _ledger?.Open());

        public override async Task<IFindings?> VerifyAsync(ITarget target)
        {
            if (_ledger is null)
            {
                return null;
            }

            try
            {
                ISequenceSession session = (ISequenceSession)target.OpenSession(0);
                _ledger.After = await session.ReadLatestAsync(SequenceName).ConfigureAwait(false);
            }
            catch (Exception)
            {
                // The cluster is gone: what the workers have seen is all the evidence there is.
            }

            return _ledger.Check();
        }
    }

    private sealed class Values(ISequenceSession session, SequenceLedger.Page? values) : Requester
    {
        [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
        public override async ValueTask<OperationResult> SendAsync(Draw draw)
        {
            long start = Ticks.Now;
            values?.Begin();
            try
            {
                long value = await session.NextAsync(SequenceName).ConfigureAwait(false);
                values?.Got(new SequenceLedger.Entry(value, start, Ticks.Now));
                return OperationResult.Success;
            }
            catch (Exception failure) when (session.DidNotHappen(failure))
            {
                values?.GotNothing();
                throw;
            }
        }
    }
}
