using System.CommandLine;
using System.CommandLine.Parsing;
using Kahuna.Cli.Commands;

namespace Kahuna.Cli.Shell;

/// <summary>
/// The options that were given to the shell and hold for its lines: the cluster, the credentials and the form of
/// results. An option of the line overrides that of the shell. A line that names another cluster has none of the
/// shell's credentials. Immutable.
/// </summary>
internal sealed class GivenOptions
{
    private readonly (Option Option, string[] Words)[] _given;
    private readonly Option[] _clusters;
    private readonly HashSet<Option> _connection;

    /// <summary>Takes the options of the shell's own command line.</summary>
    public GivenOptions(CommandCall call)
    {
        _clusters = [call.Options.Endpoints, call.Options.Context];
        _connection = [.. call.Options.All.Where(option => option != call.Options.Timeout)];
        _given =
        [
            .. call.Parsed.RootCommandResult.Command.Options.Select(option => (option, call.Parsed.GetResult(option)))
                .Where(static pair => pair.Item2 is { Implicit: false, Option.Recursive: true })
                .Select(static pair => (pair.option, WordsOf(pair.Item2!))),
        ];
    }

    /// <summary>The words of a line with the options of the shell before them.</summary>
    public IReadOnlyList<string> Before(IReadOnlyList<string> words)
    {
        string[] options =
        [
            .. words.TakeWhile(static word => word != "--").Where(static word => word.StartsWith('-'))
                .Select(static word => word.Split('=', 2)[0]),
        ];
        bool isElsewhere = _clusters.Any(option => IsIn(option, options));
        return
        [
            .. _given.Where(given => !IsIn(given.Option, options))
                .Where(given => !isElsewhere || !_connection.Contains(given.Option))
                .SelectMany(static given => given.Words),
            .. words,
        ];
    }

    private static bool IsIn(Option option, string[] words) =>
        words.Contains(option.Name) || option.Aliases.Any(words.Contains);

    private static string[] WordsOf(OptionResult result) =>
        [result.Option.Name, .. result.Tokens.Select(static token => token.Value)];
}
