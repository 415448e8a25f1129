namespace Kahuna.Benchmark.Targets;

/// <summary>The target answered a request with an error; the message is the target's.</summary>
internal sealed class RequestFailedException(string message) : Exception(message);
