namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// What came of reading the options; exactly one of the three is there: options, errors (one line each; exit code 1), or a text that was
/// asked for (help or version; exit code 0). Immutable.
/// </summary>
internal sealed record NodeOptionsResult
{
    public NodeOptions? Options { get; init; }

    public IReadOnlyList<string> Errors { get; init; } = [];

    public string? Text { get; init; }
}
