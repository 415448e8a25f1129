using System.CommandLine;
using System.Globalization;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;

namespace Kahuna.Cli.Commands.Keys;

/// <summary>The commands that read many keys: <c>scan</c> and <c>count</c>. Static.</summary>
internal static class ScanCommands
{
    public static CliCommand Scan()
    {
        Bounds bounds = new();
        Option<long?> limit = Given.Number("--limit", "Most keys to show", min: 1);
        Option<bool> keysOnly = Given.Flag("--keys-only", "Without the values");
        Option<bool> descending = Given.Flag("--descending", "From the last key to the first");
        CliCommand command = new("scan", "List the keys with a prefix, in the order of their bytes", async call =>
        {
            ScanOptions options = bounds.Read(call) with
            {
                Limit = call.Get(limit),
                KeysOnly = call.Get(keysOnly),
                Descending = call.Get(descending),
            };
            IAsyncEnumerable<KeyValueEntry> entries = (await call.ConnectAsync().ConfigureAwait(false)).KeyValues
                .ScanAsync(bounds.PrefixOf(call), options, call.Stop);
            string[] columns = options.KeysOnly ? ["key", "revision"] : ["key", "revision", "value"];
            await call.Output.WriteAllAsync(columns, Records(entries, options.KeysOnly)).ConfigureAwait(false);
            return ExitCode.Done;
        });
        bounds.AddTo(command);
        command.Add(limit);
        command.Add(keysOnly);
        command.Add(descending);
        return command;
    }

    public static CliCommand Count()
    {
        Bounds bounds = new();
        CliCommand command = new("count", "Count the keys with a prefix", async call =>
        {
            string prefix = bounds.PrefixOf(call);
            long count = await (await call.ConnectAsync().ConfigureAwait(false)).KeyValues
                .CountAsync(prefix, bounds.Read(call), call.Stop).ConfigureAwait(false);
            call.Output.Write(
                new Record { { "prefix", prefix }, { "count", count } }, count.ToString(CultureInfo.InvariantCulture));
            return ExitCode.Done;
        });
        bounds.AddTo(command);
        return command;
    }

    private static async IAsyncEnumerable<Record> Records(IAsyncEnumerable<KeyValueEntry> entries, bool keysOnly)
    {
        await foreach (KeyValueEntry entry in entries.ConfigureAwait(false))
        {
            Record record = new() { { "key", entry.Key }, { "revision", entry.Revision.Value } };
            if (!keysOnly)
            {
                record.Add("value", entry.Value);
            }

            yield return record;
        }
    }

    /// <summary>Which keys are read.</summary>
    private sealed class Bounds
    {
        private readonly KeyArgument _prefix = KeyArgument.Prefix();
        private readonly Option<string> _from = Given.Text("--from", "key", "First key; it is included");
        private readonly Option<string> _to = Given.Text("--to", "key", "Key behind the last one");
        private readonly Option<bool> _consistent = Given.Flag("--consistent", "Show one moment of all keys");
        private readonly LevelOption _level = new();

        public void AddTo(CliCommand command)
        {
            command.Add(_prefix);
            command.Add(_from);
            command.Add(_to);
            command.Add(_consistent);
            command.Add(_level);
        }

        public string PrefixOf(CommandCall call) => call.Get(_prefix);

        public ScanOptions Read(CommandCall call) => new()
        {
            From = call.Get(_from),
            To = call.Get(_to),
            Consistent = call.Get(_consistent),
            Durability = _level.Of(call),
        };
    }
}
