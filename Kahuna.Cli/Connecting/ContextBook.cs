namespace Kahuna.Cli.Connecting;

/// <summary>All contexts, and the one that commands use. Immutable.</summary>
internal sealed record ContextBook
{
    /// <summary>The name of the context in use; null: none.</summary>
    public string? Current { get; init; }

    /// <summary>The contexts by name.</summary>
    public IReadOnlyDictionary<string, NamedContext> Contexts { get; init; } =
        new SortedDictionary<string, NamedContext>(StringComparer.Ordinal);

    /// <summary>The book with a context added, or replaced.</summary>
    public ContextBook With(string name, NamedContext context) => this with
    {
        Contexts = new SortedDictionary<string, NamedContext>(
            Contexts.ToDictionary(StringComparer.Ordinal), StringComparer.Ordinal)
        {
            [name] = context,
        },
    };

    /// <summary>The book without a context, which is not in use either.</summary>
    public ContextBook Without(string name) => new()
    {
        Current = Current == name ? null : Current,
        Contexts = Contexts.Where(pair => pair.Key != name).ToDictionary(StringComparer.Ordinal),
    };
}
