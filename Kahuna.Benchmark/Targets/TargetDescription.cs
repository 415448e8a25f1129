namespace Kahuna.Benchmark.Targets;

/// <summary>What was reached: the server's name and version as it tells them, and the endpoints in use.</summary>
internal sealed record TargetDescription(string Server, string ServerVersion, IReadOnlyList<string> Endpoints)
{
    /// <summary>Where the server's state lies on disk, as <c>rocksdb</c>; null when it does not say.</summary>
    public string? Store { get; init; }
}
