using Kahuna.Benchmark.Options;
using Kahuna.Wire.Scripts;

namespace Kahuna.Benchmark.Workloads;

/// <summary>
/// A script that the tool can run, and which of the tool's parameters it names. Immutable; any thread.
/// </summary>
internal sealed class BenchScript
{
    /// <summary>A key of the key space.</summary>
    public const string Key = "key";

    /// <summary>A payload.</summary>
    public const string Value = "value";

    /// <summary>The number of the run.</summary>
    public const string Number = "n";

    private BenchScript(string text, IReadOnlySet<string> names)
    {
        Text = text;
        TakesKey = names.Contains(Key);
        TakesValue = names.Contains(Value);
        TakesNumber = names.Contains(Number);
    }

    public string Text { get; }

    public bool TakesKey { get; }

    public bool TakesValue { get; }

    public bool TakesNumber { get; }

    /// <summary>A script of Redis, in Lua; its parameters are <c>KEYS[1]</c>, <c>ARGV[1]</c>, <c>ARGV[2]</c>.</summary>
    public static BenchScript OfRedis(string text) => new(text, new HashSet<string> { Key, Value, Number });

    /// <summary>
    /// Reads a script. When it cannot run, the result is null and <paramref name="error"/> a sentence that begins with
    /// an option.
    /// </summary>
    /// <param name="text">The text.</param>
    /// <param name="options">The options of the run, for the durability and a key.</param>
    /// <param name="error">Why the script cannot run; null when it can.</param>
    public static BenchScript? TryParse(string text, BenchOptions options, out string? error)
    {
        ScriptProgram program;
        try
        {
            program = ScriptProgram.Parse(text);
        }
        catch (ScriptSyntaxException failure)
        {
            error = $"--script: '{options.Script}': {failure.Message.TrimEnd('.')}.";
            return null;
        }

        HashSet<string> names =
        [
            .. ScriptLexer.Tokens(text, ScriptLanguage.Newest, out _)
                .Where(static token => token.Kind == ScriptTokenKind.Parameter)
                .Select(static token => token.Text),
        ];
        if (names.FirstOrDefault(static name => name is not (Key or Value or Number)) is { } foreign)
        {
            error = $"--script: '{options.Script}' names @{foreign}; the parameters of a run are @key, @value and @n.";
            return null;
        }

        error = Refusal(program, options);
        return error is null ? new BenchScript(text, names) : null;
    }

    private static string? Refusal(ScriptProgram program, BenchOptions options)
    {
        // The keys of the key space are alike: where a script can run with one of them, it can with the others.
        ScriptParameter[] parameters = [new(Key, ScriptValue.Of(new KeySpace(1, options.Buckets)[0]))];
        if (ScriptTarget.Find(program, parameters, given: null, out _, out Durability durability) is { } refusal)
        {
            return $"--script: '{options.Script}': {refusal}.";
        }

        string level = durability == Durability.Ephemeral ? BenchOptions.Ephemeral : BenchOptions.Persistent;
        return level == options.Durability || !(program.UsesEphemeral || program.UsesPersistent)
            ? null
            : $"--durability: the keys of '{options.Script}' are {level}; use --durability {level}.";
    }
}
