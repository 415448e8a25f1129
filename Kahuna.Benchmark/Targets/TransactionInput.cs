namespace Kahuna.Benchmark.Targets;

/// <summary>What one transaction does; it names each key once. Immutable.</summary>
/// <param name="Reads">The keys that are read.</param>
/// <param name="Writes">The keys that are written.</param>
/// <param name="Value">What is written to each of them.</param>
internal readonly record struct TransactionInput(
    IReadOnlyList<string> Reads, IReadOnlyList<string> Writes, ReadOnlyMemory<byte> Value);
