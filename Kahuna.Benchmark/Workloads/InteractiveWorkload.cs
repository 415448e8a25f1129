using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;

namespace Kahuna.Benchmark.Workloads;

/// <summary>
/// Runs a transaction of several requests: reads key by key, then writes and commits. Stateless.
/// </summary>
internal sealed class InteractiveWorkload : Workload
{
    public override string Name => "interactive";

    public override IReadOnlyList<string> Rows { get; } = ["interactive"];

    public override IReadOnlyList<WorkloadOption> Options => TransactionKeys.All;

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
            new Interactions(_chosen, Payloads, (IInteractiveSession)session);
    }

    private sealed class Interactions(TransactionKeys keys, PayloadPool payloads, IInteractiveSession session)
        : Requester
    {
        public override ValueTask<OperationResult> SendAsync(Draw draw) =>
            session.InteractAsync(keys.Choose(draw, payloads.Choose(draw.Bits)));
    }
}
