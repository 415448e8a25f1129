namespace Kahuna.Benchmark.CommandLine;

/// <summary>The command line cannot be used; the message is one sentence for the user.</summary>
internal sealed class OptionException(string message) : Exception(message);
