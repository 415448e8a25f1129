using System.CommandLine;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client.Watches;

namespace Kahuna.Cli.Commands.Watches;

/// <summary><c>watch</c>: follows changes. Static.</summary>
internal static class WatchCommand
{
    public static CliCommand Create()
    {
        KeyArgument name = KeyArgument.Prefix();
        Option<string> scope = Given.Choice(
            "--scope", "What the name stands for [default: prefix]", "prefix", "key", "bucket");
        Option<string> from = Given.Text("--from", "position", "Go on behind this position, which an event had");
        Option<bool> state = Given.Flag("--state", "Show the keys as they are first");
        Option<bool> keysOnly = Given.Flag("--keys-only", "Without the values");
        Option<bool> previous = Given.Flag("--previous", "With the value before the change");
        Option<bool> progress = Given.Flag("--progress", "Also show the position while nothing changes, once a second");
        Option<long?> count = Given.Number("--count", "End after this many events", min: 1);
        LevelOption level = new();
        return new CliCommand("watch", "Follow the changes of keys, until Ctrl+C", async call =>
        {
            WatchOptions options = new()
            {
                Scope = call.Get(scope) switch
                {
                    "key" => WatchScope.Key,
                    "bucket" => WatchScope.Bucket,
                    _ => WatchScope.Prefix,
                },
                From = PositionOf(call.Get(from)),
                WithState = call.Get(state),
                KeysOnly = call.Get(keysOnly),
                PreviousValues = call.Get(previous),
                ProgressInterval = call.Get(progress) ? TimeSpan.FromSeconds(1) : null,
                Durability = level.Of(call),
            };
            IAsyncEnumerable<Record> events = (await call.ConnectAsync().ConfigureAwait(false)).KeyValues
                .WatchAsync(call.Get(name), options, call.Stop)
                .Select(change => RecordOf(change, options, call.Output.Format));
            if (call.Get(count) is { } most)
            {
                events = events.Take((int)Math.Min(most, int.MaxValue));
            }

            await call.Output.WriteAllAsync(ColumnsOf(options), events, isLive: true).ConfigureAwait(false);
            return ExitCode.Done;
        })
        {
            name, scope, from, state, keysOnly, previous, progress, count, level,
        };
    }

    private static WatchPosition? PositionOf(string? text) =>
        text is null ? null
            : WatchPosition.TryParse(text, out WatchPosition? position) ? position
            : throw new CliException("--from: this is no position; take one from an event with --output json.");

    private static string[] ColumnsOf(WatchOptions options)
    {
        List<string> columns = ["event", "key", "revision"];
        if (!options.KeysOnly)
        {
            columns.Add("value");
        }

        if (options.PreviousValues)
        {
            columns.Add("previous");
        }

        return [.. columns];
    }

    private static Record RecordOf(WatchEvent change, WatchOptions options, OutputFormat format)
    {
        Record record = new()
        {
            { "event", WordOf(change.Kind) },
            { "key", change.Key },
            { "revision", change.Revision.Value },
        };
        if (!options.KeysOnly)
        {
            bool hasValue = change.Kind is WatchEventKind.Set or WatchEventKind.Current;
            record.Add("value", hasValue ? (object)change.Value : null);
        }

        if (options.PreviousValues)
        {
            record.Add("previous", change.Previous);
        }

        // It is for programs, and longer than a line.
        if (format != OutputFormat.Table)
        {
            record.Add("hasMore", change.HasMore);
            record.Add("position", change.Position?.ToString());
        }

        return record;
    }

    /// <summary>The word of an event, as the JSON interface has its names: <c>currentEnd</c>.</summary>
    private static string WordOf(WatchEventKind kind)
    {
        string name = kind.ToString();
        return char.ToLowerInvariant(name[0]) + name[1..];
    }
}
