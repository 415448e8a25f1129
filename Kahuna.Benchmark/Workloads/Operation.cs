namespace Kahuna.Benchmark.Workloads;

/// <summary>One kind of request, in the order of the rows of a report.</summary>
internal enum Operation
{
    Get,
    Set,
    Sequence,

    /// <summary>Acquires a lock and releases it.</summary>
    Lock,

    /// <summary>Waits for one lock and gives it to the next who waits.</summary>
    Handover,
}
