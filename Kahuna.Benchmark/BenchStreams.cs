namespace Kahuna.Benchmark;

/// <summary>Where a run writes, and whether a person watches. Owned by the process.</summary>
internal sealed record BenchStreams(
    Stream Output, TextWriter OutputText, TextWriter Error, bool IsOutputTerminal, bool IsErrorTerminal);
