using System.CommandLine;
using System.CommandLine.Help;
using System.CommandLine.Parsing;

namespace Kahuna.Server.Hosting.Options;

/// <summary>
/// Reads the options of the command line and writes the help text. Values stay text;
/// <see cref="NodeOptionsValidation"/> parses them. Used by one thread.
/// </summary>
internal sealed class CommandLineSource
{
    private readonly Command _command = new(
        "kahuna-server",
        "A node of the Kahuna coordination service. Without options: a standalone node on https://127.0.0.1:8082.\n\n"
        + "Every option with a value may also be set in the environment (KAHUNA_NODE_ID for "
        + "--node-id) or in the JSON file "
        + "of --config (\"nodeId\"). The command line overrides the environment, which overrides the file.");

    private readonly Dictionary<OptionSetting, Option<string[]>> _options = [];
    private readonly Dictionary<OptionSetting, Option<bool>> _switches = [];
    private readonly Option<bool> _version = new("--version") { Description = "Show the version." };
    private readonly HelpOption _help = new("--help", ["-h", "-?"]) { Description = "Show this text." };

    public CommandLineSource()
    {
        foreach (OptionSetting setting in OptionSetting.All)
        {
            // Missing and repeated values are allowed here and refused in Read, which has better messages.
            Option<string[]> option = new(setting.Flag)
            {
                Description = setting.Description,
                HelpName = setting.ValueName,
                Arity = ArgumentArity.ZeroOrMore,
            };
            _options.Add(setting, option);
            _command.Options.Add(option);
        }

        foreach (OptionSetting setting in OptionSetting.Switches)
        {
            Option<bool> option = new(setting.Flag) { Description = setting.Description, Arity = ArgumentArity.Zero };
            _switches.Add(setting, option);
            _command.Options.Add(option);
        }

        _command.Options.Add(_help);
        _command.Options.Add(_version);
    }

    /// <summary>Collects the given options and the errors. True if help or version was requested.</summary>
    public bool Read(string[] args, Dictionary<OptionSetting, GivenValue> values, List<string> errors, out string? text)
    {
        // No response files: "@name" is ordinary text here.
        ParseResult result = _command.Parse(args, new ParserConfiguration { ResponseFileTokenReplacer = null });
        text = null;
        if (result.GetResult(_help) is not null)
        {
            text = HelpText();
            return true;
        }

        if (result.GetValue(_version))
        {
            text = $"kahuna-server {ProductVersion.Text}";
            return true;
        }

        AddUnmatched(result.UnmatchedTokens, errors);
        foreach ((OptionSetting setting, Option<string[]> option) in _options)
        {
            if (result.GetResult(option) is OptionResult given)
            {
                ReadOne(setting, given, values, errors);
            }
        }

        foreach ((OptionSetting setting, Option<bool> option) in _switches)
        {
            if (result.GetValue(option))
            {
                values[setting] = new GivenValue(setting.Flag, setting.Flag);
            }
        }

        if (errors.Count == 0)
        {
            errors.AddRange(result.Errors.Select(error => OneLine.Of(error.Message)));
        }

        return false;
    }

    private static void AddUnmatched(IReadOnlyList<string> tokens, List<string> errors)
    {
        List<string> options = [.. tokens.Where(token => token.StartsWith('-'))];
        IEnumerable<string> known = OptionSetting.All.Concat(OptionSetting.Switches).Select(setting => setting.Flag);
        foreach (string name in options.Select(option => OneLine.Of(option.Split('=')[0])))
        {
            errors.Add($"Unknown option {name}{NearestName.Suggestion(name, known)}");
        }

        // After an unknown option, a stray argument is most likely its value and not worth a second line.
        if (options.Count == 0 && tokens.Count > 0)
        {
            errors.Add($"Unexpected argument '{OneLine.Of(tokens[0])}'; every value follows its option.");
        }
    }

    private static void ReadOne(
        OptionSetting setting, OptionResult given, Dictionary<OptionSetting, GivenValue> values, List<string> errors)
    {
        if (given.IdentifierTokenCount > 1)
        {
            errors.Add($"{setting.Flag} is given {given.IdentifierTokenCount} times; give it once.");
        }
        else if (given.Tokens.Count == 0 || string.IsNullOrWhiteSpace(given.Tokens[0].Value))
        {
            errors.Add($"{setting.Flag} needs a value: {setting.Flag} <{setting.ValueName}>.");
        }
        else
        {
            values[setting] = new GivenValue(given.Tokens[0].Value.Trim(), setting.Flag);
        }
    }

    private string HelpText()
    {
        using StringWriter writer = new();
        _command.Parse(["--help"]).Invoke(new InvocationConfiguration { Output = writer, Error = writer });
        return writer.ToString().TrimEnd();
    }
}
