namespace Kahuna.Server.Storage;

/// <summary>A writer's batch with its number.</summary>
internal readonly record struct SubmittedBatch(LogWriter Writer, LogBuffer Buffer, ulong Number);
