namespace Kahuna.Benchmark.Targets;

/// <summary>The parameters of one run of a script; null where the script does not name them. Immutable.</summary>
/// <param name="Key"><c>@key</c>: a key of the key space.</param>
/// <param name="Value"><c>@value</c>: a payload.</param>
/// <param name="Number"><c>@n</c>: the number of the run.</param>
internal readonly record struct ScriptInput(string? Key, ReadOnlyMemory<byte>? Value, long? Number);
