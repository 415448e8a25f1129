namespace Kahuna.Benchmark.Running;

/// <summary>What the process returns; part of the tool's interface.</summary>
internal static class ExitCode
{
    public const int Finished = 0;
    public const int Failed = 1;

    /// <summary>With <c>--verify</c>: the cluster has broken a promise.</summary>
    public const int Violation = 3;
    public const int Interrupted = 130;
}
