namespace Kahuna.Server.Primitives;

/// <summary>
/// A run of log entries of one term, from <paramref name="First"/> up to the next run. A log's terms are a short list
/// of runs. Immutable.
/// </summary>
internal readonly record struct TermRun(LogIndex First, Term Term);
