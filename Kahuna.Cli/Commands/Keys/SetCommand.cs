using System.CommandLine;
using System.Globalization;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Outcomes;

namespace Kahuna.Cli.Commands.Keys;

/// <summary><c>set</c>: writes a key. Static.</summary>
internal static class SetCommand
{
    public static CliCommand Create()
    {
        KeyArgument key = new("Name of the key");
        ValueInput value = new();
        ConditionOptions conditions = new();
        LevelOption level = new();
        Option<TimeSpan?> ttl = Given.Time("--ttl", "Delete the key after this time");
        Option<bool> absent = Given.Flag("--if-absent", "Only if there is no such key");
        Option<bool> present = Given.Flag("--if-present", "Only if there is such a key");
        CliCommand command = new("set", "Write a key; prints the new revision", async call =>
        {
            SetOptions options = new()
            {
                Ttl = call.Get(ttl),
                OnlyIfAbsent = call.Get(absent),
                OnlyIfPresent = call.Get(present),
                OnlyIfValue = conditions.ValueOf(call),
                OnlyIfRevision = conditions.RevisionOf(call),
                Fence = conditions.FenceOf(call),
                Durability = level.Of(call),
            };
            KahunaValue content = await value.ReadAsync(call).ConfigureAwait(false);
            SetResult result = await (await call.ConnectAsync().ConfigureAwait(false)).KeyValues
                .SetAsync(call.Get(key), content, options, call.Stop).ConfigureAwait(false);
            call.Output.Write(
                new Record
                {
                    { "key", call.Get(key) },
                    { "applied", result.Applied },
                    { "revision", result.Revision.Value },
                },
                string.Create(CultureInfo.InvariantCulture, $"revision {result.Revision}"));
            return result.Applied ? ExitCode.Done
                : call.NotThere(
                    "The condition did not hold, and nothing was written; the revision is that of the key now.");
        })
        {
            key,
        };
        value.AddTo(command);
        command.Add(ttl);
        command.Add(absent);
        command.Add(present);
        conditions.AddTo(command);
        command.Add(level);
        return command;
    }
}
