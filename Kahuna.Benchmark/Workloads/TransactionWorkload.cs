using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;

namespace Kahuna.Benchmark.Workloads;

/// <summary>Commits a list of reads and writes at one moment, with one request. Stateless.</summary>
internal sealed class TransactionWorkload : Workload
{
    public override string Name => "transaction";

    public override IReadOnlyList<string> Rows { get; } = ["transaction"];

    public override IReadOnlyList<WorkloadOption> Options => TransactionKeys.All;

    public override bool IsServedBy(TargetKind target) => target is TargetKind.Kahuna or TargetKind.Etcd;

    public override string? Conflict(BenchOptions options) => TransactionKeys.Conflict(options);

    public override int PartitionsFor(BenchOptions options) => options.OfWorkload[TransactionKeys.Partitions];

    public override WorkloadRun Begin(BenchOptions options) => new Run(this, options);

    private sealed class Run : WorkloadRun
    {
        private readonly TransactionKeys _chosen;

        public Run(Workload workload, BenchOptions options)
            : base(workload, options) => _chosen = new TransactionKeys(Keys, options);

        public override Task PrepareAsync(ITarget target, CancellationToken cancellationToken) =>
            _chosen.PrepareAsync(target, cancellationToken);

        public override Requester Open(ITargetSession session) =>
            new Commits(_chosen, Payloads, (ITransactionSession)session);
    }

    private sealed class Commits(TransactionKeys keys, PayloadPool payloads, ITransactionSession session) : Requester
    {
        public override ValueTask<OperationResult> SendAsync(Draw draw) =>
            session.CommitAsync(keys.Choose(draw, payloads.Choose(draw.Bits)));
    }
}
