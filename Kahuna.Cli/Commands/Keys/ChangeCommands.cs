using System.CommandLine;
using System.Globalization;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;

namespace Kahuna.Cli.Commands.Keys;

/// <summary>The commands that change a key that is there: <c>del</c>, <c>extend</c> and <c>incr</c>. Static.</summary>
internal static class ChangeCommands
{
    public static CliCommand Delete()
    {
        KeyArgument key = new("Name of the key; with --prefix the beginning of the names");
        ConditionOptions conditions = new();
        LevelOption level = new();
        Option<bool> prefix = Given.Flag("--prefix", "Delete all keys whose names begin so, in steps");
        Option<bool> all = Given.Flag("--all", "Let --prefix take the empty prefix, which is every key");
        CliCommand command = new("del", "Delete a key, or all keys with a prefix", async call =>
        {
            if (call.Get(prefix))
            {
                conditions.RefuseFor(call, prefix);
                return await DeleteAllAsync(call, call.Get(key), level.Of(call), call.Get(all)).ConfigureAwait(false);
            }

            DeleteOptions options = new()
            {
                OnlyIfValue = conditions.ValueOf(call),
                OnlyIfRevision = conditions.RevisionOf(call),
                Fence = conditions.FenceOf(call),
                Durability = level.Of(call),
            };
            DeleteResult result = await (await call.ConnectAsync().ConfigureAwait(false)).KeyValues
                .DeleteAsync(call.Get(key), options, call.Stop).ConfigureAwait(false);
            call.Output.Write(
                new Record
                {
                    { "key", call.Get(key) },
                    { "deleted", result.Deleted },
                    { "revision", result.Revision.Value },
                },
                result.Deleted ? "deleted" : "not deleted");
            return result.Deleted ? ExitCode.Done : Refused(call, call.Get(key), result.Found);
        })
        {
            key, prefix, all,
        };
        conditions.AddTo(command);
        command.Add(level);
        return command;
    }

    public static CliCommand Extend()
    {
        KeyArgument key = new("Name of the key");
        Argument<TimeSpan?> ttl = Given.TimeArgument("ttl", "Time until the key is deleted; 0 for never");
        ConditionOptions conditions = new();
        LevelOption level = new();
        CliCommand command = new("extend", "Set the time to live of a key", async call =>
        {
            ExtendOptions options = new()
            {
                OnlyIfValue = conditions.ValueOf(call),
                OnlyIfRevision = conditions.RevisionOf(call),
                Fence = conditions.FenceOf(call),
                Durability = level.Of(call),
            };
            ExtendResult result = await (await call.ConnectAsync().ConfigureAwait(false)).KeyValues
                .ExtendAsync(call.Get(key), call.Get(ttl)!.Value, options, call.Stop).ConfigureAwait(false);
            call.Output.Write(
                new Record
                {
                    { "key", call.Get(key) },
                    { "extended", result.Extended },
                    { "revision", result.Revision.Value },
                },
                result.Extended ? "extended" : "not extended");
            return result.Extended ? ExitCode.Done : Refused(call, call.Get(key), result.Found);
        })
        {
            key, ttl,
        };
        conditions.AddTo(command);
        command.Add(level);
        return command;
    }

    public static CliCommand Increment()
    {
        KeyArgument key = new("Name of the key; a missing key counts as 0");
        Option<long?> by = Given.Number("--by", "What is added; may be negative [default: 1]", long.MinValue);
        Option<string> fence = new ConditionOptions().Fence;
        LevelOption level = new();
        return new CliCommand("incr", "Add to a key that holds a whole number; prints the sum", async call =>
        {
            IncrementOptions options = new()
            {
                Fence = ConditionOptions.FenceOf(call.Get(fence)),
                Durability = level.Of(call),
            };
            IncrementResult result = await (await call.ConnectAsync().ConfigureAwait(false)).KeyValues
                .IncrementAsync(call.Get(key), call.Get(by) ?? 1, options, call.Stop).ConfigureAwait(false);
            call.Output.Write(
                new Record
                {
                    { "key", call.Get(key) },
                    { "value", result.Value },
                    { "revision", result.Revision.Value },
                },
                result.Value.ToString(CultureInfo.InvariantCulture));
            return ExitCode.Done;
        })
        {
            key, by, fence, level,
        };
    }

    private static async Task<int> DeleteAllAsync(CommandCall call, string prefix, Durability level, bool mayBeAll)
    {
        if (prefix.Length == 0 && !mayBeAll)
        {
            throw new CliException("The prefix is empty, which is every key. Add --all if that is meant.");
        }

        DeleteByPrefixOptions options = new() { Durability = level, AllKeys = mayBeAll };
        long count = await (await call.ConnectAsync().ConfigureAwait(false)).KeyValues
            .DeleteByPrefixAsync(prefix, options, ct: call.Stop).ConfigureAwait(false);
        call.Output.Write(
            new Record { { "prefix", prefix }, { "deleted", count } },
            string.Create(CultureInfo.InvariantCulture, $"{count} deleted"));
        return ExitCode.Done;
    }

    private static int Refused(CommandCall call, string key, bool found) => call.NotThere(found
        ? $"A condition of key '{key}' did not hold, and nothing was changed."
        : $"There is no key '{key}'.");
}
