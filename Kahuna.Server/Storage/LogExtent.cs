namespace Kahuna.Server.Storage;

/// <summary>How far the log is known to reach, as recorded outside of it (docs/log-format.md). Immutable.</summary>
/// <param name="LogId">Identity of the log.</param>
/// <param name="Segment">The newest segment whose file was named; 0 before the first one.</param>
/// <param name="Batch">A batch that is on stable storage, with all batches before it; 0 when none is known to be.</param>
internal readonly record struct LogExtent(ulong LogId, ulong Segment, ulong Batch);
