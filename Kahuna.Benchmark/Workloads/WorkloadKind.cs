namespace Kahuna.Benchmark.Workloads;

/// <summary>What the workers do.</summary>
internal enum WorkloadKind
{
    Set,
    Get,
    Mixed,
    Sequence,
    Lock,
    Handover,
}
