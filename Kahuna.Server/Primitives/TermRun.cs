namespace Kahuna.Server.Primitives;

/// <summary>A run of log entries of one term, beginning at <paramref name="First"/> and ending before the next run. A log's terms are a short list of these.</summary>
internal readonly record struct TermRun(LogIndex First, Term Term);
