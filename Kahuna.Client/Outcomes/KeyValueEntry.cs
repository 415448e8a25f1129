namespace Kahuna.Client.Outcomes;

/// <summary>A key that a scan has found. Immutable; the value's bytes belong to the caller.</summary>
public readonly record struct KeyValueEntry
{
    /// <summary>The key.</summary>
    public string Key { get; init; }

    /// <summary>The value; null where only keys are asked for.</summary>
    public KahunaValue Value { get; init; }

    /// <summary>The revision that wrote the value, 1 or greater.</summary>
    public Revision Revision { get; init; }
}
