namespace Kahuna.Tests.Tools.Scale;

/// <summary>What a section of scripts/scale.sh found out. Immutable.</summary>
internal abstract record SectionResult
{
    /// <summary>Prints its tables and floors.</summary>
    public abstract void Print(ScaleReport report);

    /// <summary>Mean length of the keys bench:0 to bench:(keys - 1).</summary>
    public static double KeyLength(int keys) =>
        Enumerable.Range(0, keys).Average(static number => (double)$"bench:{number}".Length);
}
