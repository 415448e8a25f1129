using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;

namespace Kahuna.Benchmark.Workloads;

/// <summary>Reads a random key; a key that does not exist is a miss. Stateless.</summary>
internal sealed class GetWorkload : Workload
{
    public override string Name => "get";

    public override IReadOnlyList<string> Rows { get; } = ["get"];

    public override KeyUse KeyUse => KeyUse.Read;

    public override bool IsServedBy(TargetKind target) => true;

    public override WorkloadRun Begin(BenchOptions options) => new Run(this, options);

    private sealed class Run(Workload workload, BenchOptions options) : WorkloadRun(workload, options)
    {
        public override Requester Open(ITargetSession session) => new Reads(Keys, (IKeyValueSession)session);
    }

    private sealed class Reads(KeySpace keys, IKeyValueSession session) : Requester
    {
        public override ValueTask<OperationResult> SendAsync(Draw draw) => session.GetAsync(keys.Choose(draw));
    }
}
