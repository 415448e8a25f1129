namespace Kahuna.Tests.Tools.Processes;

/// <summary>
/// Resident bytes of a process: all, those without a file, and the most so far; and the managed heap, where it was
/// asked for. Immutable.
/// </summary>
internal readonly record struct MemoryUse(long Resident, long Anonymous, long Highest, long Heap);
