namespace Kahuna.Tests.Tools.Load;

/// <summary>What kahuna-bench is asked for. Immutable.</summary>
internal sealed record LoadPlan(string Endpoints, string Workload, int Workers, int Seconds)
{
    public int Warmup { get; init; } = 2;

    public int KeySpace { get; init; } = 10_000;

    public int ValueSize { get; init; } = 128;

    /// <summary>Further options.</summary>
    public IReadOnlyList<string> More { get; init; } = [];

    /// <summary>Whether the measurement ends when the tool reports too many faults.</summary>
    public bool MustSucceed { get; init; } = true;

    public IEnumerable<string> Arguments =>
    [
        "-c", Endpoints, "--workload", Workload, "--concurrency", $"{Workers}", "--duration", $"{Seconds}",
        "--warmup", $"{Warmup}", "--key-space", $"{KeySpace}", "--value-size", $"{ValueSize}", .. More,
        "--format", "json",
    ];
}
