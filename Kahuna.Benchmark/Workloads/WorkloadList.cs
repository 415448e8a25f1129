namespace Kahuna.Benchmark.Workloads;

/// <summary>The workloads of this tool. Static, any thread.</summary>
internal static class WorkloadList
{
    /// <summary>In the order in which help texts and error messages name them.</summary>
    public static IReadOnlyList<Workload> All { get; } =
    [
        new SetWorkload(),
        new GetWorkload(),
        new MixedWorkload(),
        new LockWorkload(),
        new HandoverWorkload(),
        new SequenceWorkload(),
        new ScriptWorkload(),
        new BatchWorkload(),
        new TransactionWorkload(),
        new InteractiveWorkload(),
    ];
}
