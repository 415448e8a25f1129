namespace Kahuna.Client.KeyValues;

/// <summary>Options of a get or an exists. Immutable, so one instance may serve many concurrent calls.</summary>
public sealed record ReadOptions
{
    /// <summary>The durability, which is part of the key's name; null for the client's.</summary>
    public Durability? Durability { get; init; }

    /// <summary>
    /// The revision to read, 1 or greater; null for the latest. A revision that history no longer holds fails with
    /// <see cref="KahunaErrorCode.RevisionCompacted"/>.
    /// </summary>
    public Revision? AtRevision { get; init; }

    /// <summary>
    /// The result carries the position of the read: a watch that begins there misses no later change of the key.
    /// </summary>
    public bool WithPosition { get; init; }
}
