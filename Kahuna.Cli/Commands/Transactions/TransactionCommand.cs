using System.CommandLine;
using System.Text;
using Kahuna.Cli.Commands.Inputs;
using Kahuna.Cli.Errors;
using Kahuna.Cli.Results;
using Kahuna.Client.Transactions;
using Kahuna.Wire.Commands;

namespace Kahuna.Cli.Commands.Transactions;

/// <summary><c>tx</c>: a transaction in one call. Static.</summary>
internal static class TransactionCommand
{
    public static CliCommand Create()
    {
        Argument<string> file = new("file")
        {
            Description = "File with the transaction, as lines or JSON; '-' or nothing: standard input",
            Arity = ArgumentArity.ZeroOrOne,
            DefaultValueFactory = static _ => "-",
        };
        Option<string[]> lines = Given.Many(
            "--line", "text", "A line of the transaction instead of a file; may be repeated");
        Option<string> fence = new ConditionOptions().Fence;
        LevelOption level = new();
        return new CliCommand("tx", "Check conditions and carry out operations at one moment", async call =>
        {
            byte[] input = call.Get(lines) is { Length: > 0 } given
                ? Encoding.UTF8.GetBytes(string.Join('\n', given))
                : call.Get(file) == "-"
                    ? await ValueInput.ReadAsync(call.Environment.Streams.Input, "standard input", call.Stop)
                        .ConfigureAwait(false)
                    : await ValueInput.ReadFileAsync(call.Get(file), call.Stop).ConfigureAwait(false);
            TransactionPlan plan = TransactionJson.Is(input)
                ? TransactionJson.Read(input, level.Of(call))
                : TransactionText.Read(Encoding.UTF8.GetString(input), level.Of(call));
            ConditionalTransaction transaction = (await call.ConnectAsync().ConfigureAwait(false)).Transactions
                .If(plan.Conditions).Then(plan.Then).Else(plan.Else).WithDurability(level.Of(call));
            if (ConditionOptions.FenceOf(call.Get(fence)) is { } held)
            {
                transaction = transaction.WithFence(held);
            }

            TransactionResult result = await transaction.CommitAsync(call.Stop).ConfigureAwait(false);
            await WriteAsync(call, result, result.Succeeded ? plan.Then : plan.Else).ConfigureAwait(false);
            return result.Succeeded ? ExitCode.Done : ExitCode.NotThere;
        })
        {
            file, lines, fence, level,
        };
    }

    private static async Task WriteAsync(CommandCall call, TransactionResult result, List<KeyOperation> carriedOut)
    {
        Record[] operations =
            [.. carriedOut.Zip(result.Results, static (asked, answer) => RecordOf(asked.Kind, answer))];
        if (call.Output.Format != OutputFormat.Table)
        {
            call.Output.Write(new Record
            {
                { "succeeded", result.Succeeded },
                {
                    "conditions",
                    result.Conditions.Select(static condition => new Record
                    {
                        { "held", condition.Held },
                        { "revision", condition.Revision.Value },
                    }).ToArray()
                },
                { "results", operations },
            });
            return;
        }

        call.Output.WriteLine(result.Succeeded
            ? "the conditions held"
            : "a condition did not hold; the operations of 'else' were carried out");
        if (operations.Length > 0)
        {
            await call.Output.WriteAllAsync(["key", "operation", "result", "revision"], operations)
                .ConfigureAwait(false);
        }
    }

    private static Record RecordOf(CommandKind kind, KeyOperationResult result)
    {
        (string operation, object? outcome) = kind switch
        {
            CommandKind.Set => ("set", result.AsSet().Applied),
            CommandKind.Get when result.AsGet() is { Found: true } found => ("get", found.Value),
            CommandKind.Get => ("get", (object?)null),
            CommandKind.Exists => ("exists", result.AsExists().Found),
            CommandKind.Delete => ("del", result.AsDelete().Deleted),
            CommandKind.Extend => ("extend", result.AsExtend().Extended),
            _ => ("incr", result.AsIncrement().Value),
        };
        return new Record
        {
            { "key", result.Key },
            { "operation", operation },
            { "result", outcome },
            { "revision", result.Revision.Value },
        };
    }
}
