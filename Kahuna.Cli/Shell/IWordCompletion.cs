namespace Kahuna.Cli.Shell;

/// <summary>Finds what the word before the cursor may be.</summary>
internal interface IWordCompletion
{
    /// <summary>The words that are possible; it does not throw.</summary>
    /// <param name="line">The line up to the cursor.</param>
    /// <param name="ct">Ends the wait.</param>
    Task<WordChoice> CompleteAsync(string line, CancellationToken ct);
}

/// <summary>What a word may be. Immutable.</summary>
/// <param name="Start">Where the word begins in the line.</param>
/// <param name="Words">The possible words, as they are, without quotes.</param>
/// <param name="Common">What replaces the word: their common beginning, in quotes when it needs them.</param>
internal sealed record WordChoice(int Start, IReadOnlyList<string> Words, string Common)
{
    public static WordChoice None { get; } = new(0, [], "");
}
