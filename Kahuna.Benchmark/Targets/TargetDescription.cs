namespace Kahuna.Benchmark.Targets;

/// <summary>What was reached: the server's name and version as it tells them, and the endpoints in use.</summary>
internal sealed record TargetDescription(string Server, string ServerVersion, IReadOnlyList<string> Endpoints);
