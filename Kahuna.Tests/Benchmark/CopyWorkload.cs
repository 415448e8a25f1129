using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;
using Kahuna.Benchmark.Workloads;

namespace Kahuna.Tests.Benchmark;

/// <summary>
/// A workload that the tool does not have, with everything that a workload can say of itself. Stateless.
/// </summary>
internal sealed class CopyWorkload : Workload
{
    private static readonly WorkloadOption s_copies = new("--copies-per-key", "n", 2, 1, 9, "Copies of each key");

    public override string Name => "copy";

    public override IReadOnlyList<string> Rows { get; } = ["copy"];

    public override KeyUse KeyUse => KeyUse.Read;

    public override string Promise => "every copy equals its key";

    public override bool TakesScript => true;

    public override IReadOnlyList<WorkloadOption> Options { get; } = [s_copies];

    public override string? Conflict(BenchOptions options) =>
        options.ValueSize % 2 != 0 ? "--value-size: copies have an even size." : null;

    public override WorkloadRun Begin(BenchOptions options) => new Run(this, options);

    private sealed class Run(Workload workload, BenchOptions options) : WorkloadRun(workload, options)
    {
        public int Copies { get; } = options.OfWorkload[s_copies];

        public override Requester Open(ITargetSession session) => new Copier(this, (IKeyValueSession)session);
    }

    private sealed class Copier(Run run, IKeyValueSession session) : Requester
    {
        public override async ValueTask<OperationResult> SendAsync(Draw draw)
        {
            string key = run.Keys.Choose(draw);
            OperationResult result = await session.GetAsync(key);
            for (int i = 0; i < run.Copies && result == OperationResult.Success; i++)
            {
                result = await session.SetAsync($"{key}/{i}", run.Payloads.Choose(draw.Bits));
            }

            return result;
        }
    }
}
