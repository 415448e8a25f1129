using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;

namespace Kahuna.Benchmark.Workloads;

/// <summary>
/// Reads or writes a random key, in the proportion of <c>--read-pct</c>; reported as two rows. Stateless.
/// </summary>
internal sealed class MixedWorkload : Workload
{
    private const int ReadRow = 0;
    private const int WriteRow = 1;

    public override string Name => "mixed";

    public override IReadOnlyList<string> Rows { get; } = ["get", "set"];

    public override KeyUse KeyUse => KeyUse.Read;

    public override bool IsServedBy(TargetKind target) => true;

    public override WorkloadRun Begin(BenchOptions options) => new Run(this, options);

    private sealed class Run(Workload workload, BenchOptions options) : WorkloadRun(workload, options)
    {
        public int ReadPct { get; } = options.ReadPct;

        public override Requester Open(ITargetSession session) => new ReadsAndWrites(this, (IKeyValueSession)session);
    }

    private sealed class ReadsAndWrites(Run run, IKeyValueSession session) : Requester
    {
        public override ValueTask<OperationResult> SendAsync(Draw draw)
        {
            string key = run.Keys.Choose(draw);
            if (draw.Percent < run.ReadPct)
            {
                Row = ReadRow;
                return session.GetAsync(key);
            }

            Row = WriteRow;
            return session.SetAsync(key, run.Payloads.Choose(draw.Bits));
        }
    }
}
