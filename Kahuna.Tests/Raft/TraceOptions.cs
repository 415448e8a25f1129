namespace Kahuna.Tests.Raft;

/// <summary>Configuration of a trace's cluster.</summary>
internal sealed record TraceOptions
{
    public int Voters { get; init; } = 3;

    public int Learners { get; init; }

    public int AppendBytesMax { get; init; } = 1 << 20;

    public int CacheBytes { get; init; } = 1 << 20;

    public int CacheBytesMax { get; init; } = 4 << 20;
}
