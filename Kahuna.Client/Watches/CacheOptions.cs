namespace Kahuna.Client.Watches;

/// <summary>Options of a cache. Immutable, so one instance may serve many caches.</summary>
public sealed record CacheOptions
{
    /// <summary>Which keys the name stands for. Default <see cref="WatchScope.Prefix"/>.</summary>
    public WatchScope Scope { get; init; } = WatchScope.Prefix;

    /// <summary>The durability, which is part of the keys' names; null for the client's.</summary>
    public Durability? Durability { get; init; }

    /// <summary>Without the values, which are null then.</summary>
    public bool KeysOnly { get; init; }

    /// <summary>The most keys that the cache holds, 1 or more; more end it. Default 100,000.</summary>
    public int MaxKeys { get; init; } = 100_000;

    /// <summary>
    /// The most bytes of keys (2 for each character) and values that the cache holds, 1 or more; more end it. Default
    /// 256 MiB.
    /// </summary>
    public long MaxBytes { get; init; } = 256L << 20;

    /// <exception cref="ArgumentException">An option is outside its range.</exception>
    internal void Check()
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(MaxKeys, 1);
        ArgumentOutOfRangeException.ThrowIfLessThan(MaxBytes, 1);
    }
}
