namespace Kahuna.Tests.WatchStreams;

/// <summary>Where a watch begins, as far as the history shows it. Immutable.</summary>
internal sealed record StartPoint
{
    /// <summary>The revisions that keys have there.</summary>
    public IReadOnlyDictionary<string, long> Revisions { get; init; } = new Dictionary<string, long>();

    /// <summary>Writes that were acknowledged before this time lie before it.</summary>
    public long NotBeforeNs { get; init; } = long.MinValue;

    /// <summary>Writes that were called after this time lie behind it.</summary>
    public required long CompleteFromNs { get; init; }

    /// <summary>The watch that told the position; of keys that it was not told of, less is known. Null: none.</summary>
    public WatchStream? Teller { get; init; }

    /// <summary>When it told the position.</summary>
    public long ToldNs { get; init; }

    /// <summary>The same for one key.</summary>
    public (long? Revision, long NotBeforeNs, long CompleteFromNs) For(string key) => Teller?.Covers(key) == false
        ? (null, long.MinValue, ToldNs)
        : (Revisions.TryGetValue(key, out long revision) ? revision : null, NotBeforeNs, CompleteFromNs);
}
