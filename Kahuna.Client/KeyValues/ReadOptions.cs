namespace Kahuna.Client.KeyValues;

/// <summary>Options of a get or exists. Immutable, so one instance may serve many calls at a time.</summary>
public sealed record ReadOptions
{
    /// <summary>Durability level, which is part of the key's name; null takes that of the client's options.</summary>
    public Durability? Durability { get; init; }

    /// <summary>Read what this revision wrote, 1 or greater. Null: the latest. A revision that the key's history no longer holds is answered with <see cref="KahunaErrorCode.RevisionCompacted"/>.</summary>
    public long? AtRevision { get; init; }
}
