namespace Kahuna.Benchmark.Targets;

/// <summary>How one request ended, best first. Only <see cref="Success"/> counts as throughput.</summary>
internal enum OperationResult
{
    Success,

    /// <summary>An answer that found nothing.</summary>
    Miss,

    Timeout,

    Error,
}
