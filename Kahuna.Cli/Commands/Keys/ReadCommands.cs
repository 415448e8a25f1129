using System.CommandLine;
using System.Globalization;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;

namespace Kahuna.Cli.Commands.Keys;

/// <summary>The commands that read one key: <c>get</c> and <c>exists</c>. Static.</summary>
internal static class ReadCommands
{
    public static CliCommand Get()
    {
        KeyArgument key = new("Name of the key");
        Option<long?> revision = Revision();
        LevelOption level = new();
        Option<bool> base64 = Given.Flag("--base64", "Show the value in base64");
        return new CliCommand("get", "Read the value of a key", async call =>
        {
            GetResult found = await (await call.ConnectAsync().ConfigureAwait(false)).KeyValues
                .GetAsync(call.Get(key), Options(call, revision, level), call.Stop).ConfigureAwait(false);
            if (!found.Found)
            {
                return call.NotThere($"There is no key '{call.Get(key)}'.");
            }

            if (call.Output.Format != OutputFormat.Table)
            {
                call.Output.Write(new Record
                {
                    { "key", call.Get(key) },
                    { "value", found.Value },
                    { "revision", found.Revision.Value },
                    { "remainingTtl", found.RemainingTtl },
                });
            }
            else if (call.Get(base64))
            {
                call.Output.WriteLine(Convert.ToBase64String(found.Value.Memory.Span));
            }
            else
            {
                call.Output.WriteValue(found.Value);
            }

            return ExitCode.Done;
        })
        {
            key, revision, base64, level,
        };
    }

    public static CliCommand Exists()
    {
        KeyArgument key = new("Name of the key");
        Option<long?> revision = Revision();
        LevelOption level = new();
        return new CliCommand("exists", "Ask whether a key exists; exit code 1 when it does not", async call =>
        {
            ExistsResult found = await (await call.ConnectAsync().ConfigureAwait(false)).KeyValues
                .ExistsAsync(call.Get(key), Options(call, revision, level), call.Stop).ConfigureAwait(false);
            call.Output.Write(
                new Record
                {
                    { "key", call.Get(key) },
                    { "exists", found.Found },
                    { "revision", found.Revision.Value },
                    { "remainingTtl", found.RemainingTtl },
                },
                found.Found
                    ? string.Create(CultureInfo.InvariantCulture, $"yes, at revision {found.Revision}")
                    : "no");
            return found.Found ? ExitCode.Done : ExitCode.NotThere;
        })
        {
            key, revision, level,
        };
    }

    private static Option<long?> Revision() =>
        Given.Number("--revision", "Read the key as it was at this revision", min: 1);

    private static ReadOptions Options(CommandCall call, Option<long?> revision, LevelOption level) => new()
    {
        AtRevision = call.Get(revision) is { } number ? new Revision(number) : null,
        Durability = level.Of(call),
    };
}
