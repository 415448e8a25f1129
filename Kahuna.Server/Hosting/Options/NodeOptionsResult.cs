namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// The result of reading the options. Exactly one is set: options, errors (one line each; exit code 1), or a requested
/// text (help or version; exit code 0). Immutable.
/// </summary>
internal sealed record NodeOptionsResult
{
    public NodeOptions? Options { get; init; }

    public IReadOnlyList<string> Errors { get; init; } = [];

    public string? Text { get; init; }
}
