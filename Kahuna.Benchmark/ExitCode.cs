namespace Kahuna.Benchmark;

/// <summary>What the process returns; part of the tool's interface.</summary>
internal static class ExitCode
{
    public const int Finished = 0;
    public const int Failed = 1;

    /// <summary>With <c>--verify</c>: the cluster has broken a promise.</summary>
    public const int Violation = 3;

    /// <summary>No request was answered, or more failed or were not finished than <c>--max-errors</c> allows.</summary>
    public const int TooManyErrors = 4;
    public const int Interrupted = 130;
}
