using System.CommandLine;
using System.Text;
using System.Text.Json;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client.Scripts;

namespace Kahuna.Cli.Commands.Transactions;

/// <summary><c>script</c>: runs a script next to the data. Static.</summary>
internal static class ScriptCommand
{
    public static CliCommand Create()
    {
        Argument<string> file = new("file")
        {
            Description = "File with the script; '-' or nothing: standard input",
            Arity = ArgumentArity.ZeroOrOne,
            DefaultValueFactory = static _ => "-",
        };
        Option<string> text = Given.Text("--text", "script", "The script itself instead of a file");
        Option<string[]> parameters = Given.Many(
            "--param", "name=text", "Parameter @name, a string; name:=JSON is a number, true, false or null");
        parameters.Aliases.Add("-p");
        Option<string> fence = new ConditionOptions().Fence;
        return new CliCommand("script", "Run a script as one transaction; prints what it returns", async call =>
        {
            string script = call.Get(text) ?? Encoding.UTF8.GetString(
                call.Get(file) == "-"
                    ? await ValueInput.ReadAsync(call.Environment.Streams.Input, "standard input", call.Stop)
                        .ConfigureAwait(false)
                    : await ValueInput.ReadFileAsync(call.Get(file), call.Stop).ConfigureAwait(false));
            ScriptOptions options = new() { Fence = ConditionOptions.FenceOf(call.Get(fence)) };
            ScriptResult result = await (await call.ConnectAsync().ConfigureAwait(false)).Scripts
                .RunAsync(script.TrimStart('\uFEFF'), ParametersOf(call.Get(parameters) ?? []), options, call.Stop)
                .ConfigureAwait(false);
            if (call.Output.Format != OutputFormat.Table)
            {
                call.Output.Write(new Record { { "result", ValueOf(result) } });
            }
            else
            {
                call.Output.WriteLine(result.Kind == ScriptResultKind.Array
                    ? string.Join('\n', result.Items.Select(TextOf))
                    : TextOf(result));
            }

            return ExitCode.Done;
        })
        {
            file, text, parameters, fence,
        };
    }

    private static ScriptParameters ParametersOf(string[] given)
    {
        ScriptParameters parameters = [];
        foreach (string parameter in given)
        {
            int equals = parameter.IndexOf('=', StringComparison.Ordinal);
            if (equals < 1)
            {
                throw new CliException($"--param: '{parameter}' is neither name=text nor name:=JSON.");
            }

            bool isJson = parameter[equals - 1] == ':';
            string name = parameter[..(isJson ? equals - 1 : equals)];
            string value = parameter[(equals + 1)..];
            parameters[name] = isJson ? OfJson(name, value) : value;
        }

        return parameters;
    }

    private static ScriptArgument OfJson(string name, string text)
    {
        try
        {
            using JsonDocument document = JsonDocument.Parse(text);
            JsonElement value = document.RootElement;
            return value.ValueKind switch
            {
                JsonValueKind.Null => ScriptArgument.Null,
                JsonValueKind.True or JsonValueKind.False => value.GetBoolean(),
                JsonValueKind.String => value.GetString(),
                JsonValueKind.Number when value.TryGetInt64(out long whole) => whole,
                JsonValueKind.Number => value.GetDouble(),
                _ => throw new CliException($"--param: '{name}' is an array or object; a script takes none."),
            };
        }
        catch (JsonException)
        {
            throw new CliException($"--param: the value of '{name}' is no JSON; '{name}={text}' is a string.");
        }
    }

    private static string TextOf(ScriptResult result) => result.IsNull ? "null" : RecordText.Of(ValueOf(result));

    private static object? ValueOf(ScriptResult result) => result.Kind switch
    {
        ScriptResultKind.Null => null,
        ScriptResultKind.Bool => result.AsBool(),
        ScriptResultKind.Integer => result.AsInteger(),
        ScriptResultKind.Double => result.AsDouble(),
        ScriptResultKind.String => result.AsString(),
        ScriptResultKind.Bytes => new KahunaValue(result.AsBytes()),
        _ => result.Items.Select(ValueOf).ToArray(),
    };
}
