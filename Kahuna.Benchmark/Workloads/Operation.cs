namespace Kahuna.Benchmark.Workloads;

/// <summary>One kind of request, in the order of the rows of a report.</summary>
internal enum Operation
{
    Get,
    Set,
    Sequence,
}
