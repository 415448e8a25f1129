using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets;

namespace Kahuna.Benchmark.Workloads;

/// <summary>
/// One kind of load: what it is called, which options it takes, what its requests are and how they are reported. Every
/// rule of the command line and every help text that depends on the workload is derived from these members. Stateless;
/// listed in <see cref="WorkloadList"/>.
/// </summary>
internal abstract class Workload
{
    /// <summary>As on the command line and in reports.</summary>
    public abstract string Name { get; }

    /// <summary>The operations that a report has rows for, in their order.</summary>
    public abstract IReadOnlyList<string> Rows { get; }

    /// <summary>How the requests use the key space as keys of values.</summary>
    public virtual KeyUse KeyUse => KeyUse.None;

    /// <summary>
    /// What <c>--verify</c> checks of every answer, for the help; null: the workload cannot be verified.
    /// </summary>
    public virtual string? Promise => null;

    /// <summary>Whether the workload runs the file of <c>--script</c>.</summary>
    public virtual bool TakesScript => false;

    /// <summary>
    /// Options that only this workload has. They follow the others in the help and in the JSON report.
    /// </summary>
    public virtual IReadOnlyList<WorkloadOption> Options => [];

    /// <summary>Whether the target has the calls that the requests need.</summary>
    public virtual bool IsServedBy(TargetKind target) => target == TargetKind.Kahuna;

    /// <summary>
    /// Why the options contradict each other, as one sentence that begins with an option; null when they do not.
    /// </summary>
    public virtual string? Conflict(BenchOptions options) => null;

    /// <summary>Partitions that the requests need.</summary>
    public virtual int PartitionsFor(BenchOptions options) => 1;

    /// <summary>Keys that are written before the load unless <c>--seed-keys</c> says how many.</summary>
    public int DefaultSeedKeys(int keySpace) =>
        KeyUse == KeyUse.Read ? Math.Min(keySpace, BenchOptions.DefaultSeedKeysMax) : 0;

    /// <summary>What the workers of one run share.</summary>
    public abstract WorkloadRun Begin(BenchOptions options);
}
