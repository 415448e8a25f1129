using System.Globalization;
using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;

namespace Kahuna.Benchmark.Workloads;

/// <summary>
/// Writes a random payload to neighbouring keys with one call. A request, and so a row's count, is the batch as a
/// whole. Stateless.
/// </summary>
internal sealed class BatchWorkload : Workload
{
    private static readonly WorkloadOption s_items = new("--items", "n", 100, 1, 10_000, "Sets of one batch");

    public override string Name => "batch";

    public override IReadOnlyList<string> Rows { get; } = ["batch"];

    public override KeyUse KeyUse => KeyUse.Written;

    public override IReadOnlyList<WorkloadOption> Options { get; } = [s_items];

    public override string? Conflict(BenchOptions options) => options.OfWorkload[s_items] <= options.KeySpace
        ? null
        : string.Create(
            CultureInfo.InvariantCulture,
            $"{s_items.Name}: there are only {options.KeySpace} keys (--key-space).");

    public override WorkloadRun Begin(BenchOptions options) => new Run(this, options);

    private sealed class Run(Workload workload, BenchOptions options) : WorkloadRun(workload, options)
    {
        public int Items { get; } = options.OfWorkload[s_items];

        public override Requester Open(ITargetSession session) => new Batches(this, (IBatchSession)session);
    }

    private sealed class Batches(Run run, IBatchSession session) : Requester
    {
        public override ValueTask<OperationResult> SendAsync(Draw draw)
        {
            int first = SplitMix.Below(draw.Choice, run.Keys.Count);
            string[] keys = new string[run.Items];
            for (int i = 0; i < keys.Length; i++)
            {
                keys[i] = run.Keys[(int)(((long)first + i) % run.Keys.Count)];
            }

            return session.SetManyAsync(keys, run.Payloads.Choose(draw.Bits));
        }
    }
}
