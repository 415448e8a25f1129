namespace Kahuna.Client.KeyValues;

/// <summary>Options of an increment. Immutable, so one instance may serve many calls at a time.</summary>
public sealed record IncrementOptions
{
    /// <summary>Durability level, which is part of the key's name; null takes that of the client's options.</summary>
    public Durability? Durability { get; init; }
}
