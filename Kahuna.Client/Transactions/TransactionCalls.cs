using System.Globalization;
using Kahuna.Client.Connection;
using Kahuna.Client.Coordination;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Transactions;

/// <summary>Encodes transactions and reads their results. Stateless, any thread.</summary>
internal static class TransactionCalls
{
    /// <summary>Runs a transaction.</summary>
    public static async Task<TransactionResult> RunAsync(
        TransactionCoordinator coordinator, ConditionalTransaction transaction, CancellationToken ct)
    {
        ByteBuffer body = ByteBuffer.Rent();
        try
        {
            Encode(transaction, body);
            CommitRequest request = new() { Body = body.WrittenMemory, Fence = transaction.Fence };
            TransactionReply reply = await coordinator.RunAsync(request, ct)
                .ConfigureAwait(coordinator.Connection.CapturesContext);
            return Read(transaction, in reply);
        }
        finally
        {
            body.Return();
        }
    }

    /// <summary>
    /// Runs a transaction whose results are of no interest. Returns the first condition that did not hold, from 0 on,
    /// or null when it is committed.
    /// </summary>
    public static async Task<int?> CommitAsync(
        TransactionCoordinator coordinator, ConditionalTransaction transaction, CancellationToken ct)
    {
        ByteBuffer body = ByteBuffer.Rent();
        try
        {
            Encode(transaction, body);
            CommitRequest request = new()
            {
                Body = body.WrittenMemory,
                Fence = transaction.Fence,
                IsVerdictEnough = true,
                Holder = transaction.Holder,
            };
            TransactionReply reply = await coordinator.RunAsync(request, ct)
                .ConfigureAwait(coordinator.Connection.CapturesContext);
            return reply.Holds ? null : FirstFailure(reply.Outcomes.Span);
        }
        finally
        {
            body.Return();
        }
    }

    private static int FirstFailure(ReadOnlySpan<byte> outcomes)
    {
        int condition = 0;
        while (Take(ref outcomes).Status == OutcomeStatus.Applied)
        {
            condition++;
        }

        return condition;
    }

    private static void Encode(ConditionalTransaction transaction, ByteBuffer body)
    {
        (KeyCondition[] conditions, KeyOperation[] then, KeyOperation[] @else) =
            (transaction.Conditions, transaction.ThenOperations, transaction.ElseOperations);
        if (then.Length + @else.Length == 0)
        {
            throw OperationErrors.BadArgument("the transaction has no operations; nothing was sent");
        }

        RequireCount("conditions", conditions.Length);
        RequireCount("operations", Math.Max(then.Length, @else.Length));
        TransactionBody.WriteHeader(body, conditions.Length, then.Length, @else.Length);
        for (int i = 0; i < conditions.Length; i++)
        {
            if (conditions[i].IsRange)
            {
                AppendRange(body, conditions[i].ToItem(transaction.Durability), i);
            }
            else
            {
                Append(body, conditions[i].ToOperation(transaction.Durability), "condition", i);
            }
        }

        for (int i = 0; i < then.Length; i++)
        {
            Append(body, then[i].ToOperation(transaction.Durability), "operation", i);
        }

        for (int i = 0; i < @else.Length; i++)
        {
            Append(body, @else[i].ToOperation(transaction.Durability), "operation of the other case", i);
        }
    }

    private static void AppendRange(ByteBuffer body, scoped in Command item, int index)
    {
        if (RangeConditionCheck.WholeRefusal(in item) is { } sentence)
        {
            throw OperationErrors.BadArgument(string.Create(
                CultureInfo.InvariantCulture, $"condition {index + 1:N0}: {sentence}; nothing was sent"));
        }

        CommandList.Append(body, in item);
    }

    /// <summary>Appends one item, which is only encoded and not run.</summary>
    private static void Append(ByteBuffer body, Operation<ExistsResult> item, string noun, int index)
    {
        string? sentence = item.Request.Refusal?.Message.TrimEnd('.');
        Command command = item.ToCommand(0);
        sentence ??= CommandCheck.ItemRefusal(in command, Limits.ValueBytesCeiling);
        if (sentence is null)
        {
            CommandList.Append(body, in command);
        }

        item.Abandon();
        if (sentence is not null)
        {
            throw OperationErrors.BadArgument(string.Create(
                CultureInfo.InvariantCulture, $"{noun} {index + 1:N0}: {sentence}; nothing was sent"));
        }
    }

    private static void RequireCount(string what, int count)
    {
        if (count > Limits.TransactionItemsMax)
        {
            throw OperationErrors.BadArgument(string.Create(
                CultureInfo.InvariantCulture,
                $"the transaction has {count:N0} {what}; the limit is {Limits.TransactionItemsMax:N0}; nothing was "
                    + $"sent"));
        }
    }

    private static TransactionResult Read(ConditionalTransaction transaction, in TransactionReply reply)
    {
        ReadOnlySpan<byte> rest = reply.Outcomes.Span;
        ConditionResult[] conditions = new ConditionResult[transaction.Conditions.Length];
        for (int i = 0; i < conditions.Length; i++)
        {
            Outcome outcome = Take(ref rest);
            conditions[i] = new ConditionResult(
                outcome.Status == OutcomeStatus.Applied, new Revision(outcome.Revision));
        }

        KeyOperation[] operations = reply.Holds ? transaction.ThenOperations : transaction.ElseOperations;
        KeyOperationResult[] results = new KeyOperationResult[operations.Length];
        for (int i = 0; i < results.Length; i++)
        {
            Outcome outcome = Take(ref rest);
            KahunaValue? value = null;
            if (outcome.HasValue)
            {
                value = outcome.ValueIsNull ? KahunaValue.Null : new KahunaValue(outcome.Value.ToArray());
            }

            results[i] = new KeyOperationResult(
                operations[i], outcome.Status, new Revision(outcome.Revision), outcome.Number, value);
        }

        return new TransactionResult(reply.Holds, conditions, results);
    }

    private static Outcome Take(ref ReadOnlySpan<byte> rest) =>
        OutcomeList.TryTake(ref rest, out Outcome outcome)
            ? outcome
            : throw OperationErrors.UnknownDescription("a transaction");
}
