namespace Kahuna.Benchmark.Targets;

/// <summary>The target cannot be used; the message is one sentence for the user.</summary>
internal sealed class TargetException(string message, Exception? cause = null) : Exception(message, cause);
