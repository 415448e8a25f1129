using System.CommandLine;
using System.CommandLine.Parsing;
using System.Globalization;
using Kahuna.Cli.Terminal;

namespace Kahuna.Cli.Commands.Inputs;

/// <summary>Makes the options of commands; each checks its value with a sentence of its own. Static.</summary>
internal static class Given
{
    public static Option<bool> Flag(string name, string description) => new(name) { Description = description };

    public static Option<string> Text(string name, string valueName, string description) => new(name)
    {
        Description = description,
        HelpName = valueName,
    };

    /// <summary>An option that may be given several times.</summary>
    public static Option<string[]> Many(string name, string valueName, string description) => new(name)
    {
        Description = description,
        HelpName = valueName,
        Arity = ArgumentArity.OneOrMore,
    };

    /// <summary>A whole number.</summary>
    public static Option<long?> Number(string name, string description, long min = 0) => new(name)
    {
        Description = description,
        HelpName = "n",
        CustomParser = result => Number(result, name, min),
    };

    /// <summary>A span of time.</summary>
    public static Option<TimeSpan?> Time(string name, string description) => new(name)
    {
        Description = description,
        HelpName = "time",
        CustomParser = result => Time(result, name),
    };

    /// <summary>A span of time without an option's name.</summary>
    public static Argument<TimeSpan?> TimeArgument(string name, string description) => new(name)
    {
        Description = description,
        CustomParser = result => Time(result, name),
    };

    /// <summary>One of some words.</summary>
    public static Option<string> Choice(string name, string description, params string[] words)
    {
        Option<string> option = Text(name, string.Join('|', words), description);
        option.CompletionSources.Add(words);
        option.Validators.Add(result => RequireOneOf(result, name, words));
        return option;
    }

    /// <summary>An argument that is one of some words.</summary>
    public static Argument<string> ChoiceArgument(string name, string description, params string[] words)
    {
        Argument<string> argument = new(name) { Description = description };
        argument.CompletionSources.Add(words);
        argument.Validators.Add(result => RequireOneOf(result, name, words));
        return argument;
    }

    private static void RequireOneOf(SymbolResult result, string name, string[] words)
    {
        if (result.Tokens.Select(static token => token.Value).Except(words).FirstOrDefault() is { } other)
        {
            result.AddError($"{name}: '{other}' is none of {string.Join(", ", words)}.");
        }
    }

    private static long? Number(ArgumentResult result, string name, long min)
    {
        string text = result.Tokens.Count == 0 ? "" : result.Tokens[0].Value;
        if (long.TryParse(text, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out long number)
            && number >= min)
        {
            return number;
        }

        string atLeast = min == long.MinValue ? "" : string.Create(CultureInfo.InvariantCulture, $" of {min} or more");
        result.AddError($"{name}: '{text}' is not a whole number{atLeast}.");
        return null;
    }

    private static TimeSpan? Time(ArgumentResult result, string name)
    {
        string text = result.Tokens.Count == 0 ? "" : result.Tokens[0].Value;
        if (SpanText.TryParse(text, out TimeSpan span))
        {
            return span;
        }

        result.AddError($"{name}: '{text}' is not {SpanText.Form}.");
        return null;
    }
}
