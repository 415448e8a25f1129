using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;

namespace Kahuna.Benchmark.Workloads;

/// <summary>Writes a random payload to a random key. Stateless.</summary>
internal sealed class SetWorkload : Workload
{
    public override string Name => "set";

    public override IReadOnlyList<string> Rows { get; } = ["set"];

    public override KeyUse KeyUse => KeyUse.Written;

    public override bool IsServedBy(TargetKind target) => true;

    public override WorkloadRun Begin(BenchOptions options) => new Run(this, options);

    private sealed class Run(Workload workload, BenchOptions options) : WorkloadRun(workload, options)
    {
        public override Requester Open(ITargetSession session) => new Writes(this, (IKeyValueSession)session);
    }

    private sealed class Writes(WorkloadRun run, IKeyValueSession session) : Requester
    {
        public override ValueTask<OperationResult> SendAsync(Draw draw) =>
            session.SetAsync(run.Keys.Choose(draw), run.Payloads.Choose(draw.Bits));
    }
}
