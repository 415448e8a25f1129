using System.CommandLine;

namespace Kahuna.Cli.Completion;

/// <summary>Finds names of keys for a person who completes a word.</summary>
internal interface IKeyNames
{
    /// <summary>
    /// The keys that begin with a word, in order, some at most; none when they are not found in time. It does not
    /// throw.
    /// </summary>
    /// <param name="parsed">The command line, which says on which cluster.</param>
    /// <param name="word">The beginning of the names.</param>
    Task<IReadOnlyList<string>> FindAsync(ParseResult parsed, string word);
}
