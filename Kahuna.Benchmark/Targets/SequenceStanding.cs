namespace Kahuna.Benchmark.Targets;

/// <summary>A sequence before the load. Immutable.</summary>
/// <param name="Latest">The value before the next one.</param>
/// <param name="CountsByOne">Whether each value is one more than the value before it, without end.</param>
internal readonly record struct SequenceStanding(long Latest, bool CountsByOne);
