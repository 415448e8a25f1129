namespace Kahuna.Tests.Tidy;

/// <summary>Namespaces of which each reaches every other by the arrows between them. Immutable.</summary>
/// <param name="Namespaces">In alphabetical order.</param>
/// <param name="Arrows">For each arrow inside of the set one use that makes it.</param>
internal sealed record NamespaceCycle(IReadOnlyList<string> Namespaces, IReadOnlyList<string> Arrows)
{
    /// <summary>The namespaces in one line.</summary>
    public string Name => string.Join(", ", Namespaces);

    public override string ToString() => $"{Name}\n    {string.Join("\n    ", Arrows)}";
}
