using System.Globalization;
using System.Runtime.ExceptionServices;
using Kahuna.Client.Connection;
using Kahuna.Client.Coordination;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.KeyValues;

/// <summary>
/// Runs batches: all items are checked before the first one is sent. Items of a batch that is not atomic are operations
/// of their own; an atomic one is a single command. Stateless, any thread.
/// </summary>
internal sealed class BatchCalls(TransactionCoordinator coordinator)
{
    /// <summary>Items of a batch that are under way at a time, so that it leaves room for other calls.</summary>
    private const int UnderWayMax = 1_000;

    /// <summary>Runs the batch as its options say.</summary>
    public Task<BatchResult<TResult>> RunAsync<TResult>(
        IEnumerable<Operation<TResult>> items,
        BatchOptions? options,
        CancellationToken ct)
        where TResult : struct, IOperationResult<TResult>, IItemResult<TResult>
    {
        // A sequence without end is refused, too.
        Operation<TResult>[] operations = [.. items.Take(Limits.BatchItemsMax + 1)];
        return options is { Atomic: true }
            ? AtomicAsync(operations, options.Fence, ct)
            : EachAsync(coordinator.Connection, operations, ct);
    }

    /// <summary>Runs the operations, each with an outcome of its own.</summary>
    private static async Task<BatchResult<TResult>> EachAsync<TResult>(
        ClusterConnection connection, Operation<TResult>[] items, CancellationToken ct)
        where TResult : struct, IOperationResult<TResult>
    {
        Check(items, Limits.BatchItemsMax);
        BatchOutcome<TResult>[] outcomes = new BatchOutcome<TResult>[items.Length];
        Exception? end = null;
        bool mayHaveHappened = false;
        ValueTask<TResult>[] tasks = new ValueTask<TResult>[Math.Min(items.Length, UnderWayMax)];
        for (int begin = 0; begin < items.Length && end is null; begin += UnderWayMax)
        {
            int count = Math.Min(UnderWayMax, items.Length - begin);
            for (int i = 0; i < count; i++)
            {
                tasks[i] = connection.Run(items[begin + i], ct);
            }

            for (int i = 0; i < count; i++)
            {
                try
                {
                    outcomes[begin + i] = new BatchOutcome<TResult>(
                        await tasks[i].ConfigureAwait(connection.CapturesContext));
                    mayHaveHappened = true;
                }
                catch (KahunaException error)
                {
                    outcomes[begin + i] = new BatchOutcome<TResult>(error);
                    mayHaveHappened |= error.Outcome != OperationOutcome.DidNotHappen;
                }
                catch (KahunaCanceledException canceled)
                {
                    end ??= canceled;
                    mayHaveHappened |= canceled.Outcome != OperationOutcome.DidNotHappen;
                }
                catch (ObjectDisposedException closed)
                {
                    end ??= closed;
                }
            }

            if (end is not null)
            {
                Abandon(items.AsSpan(begin + count));
            }
        }

        if (end is KahunaCanceledException)
        {
            throw new KahunaCanceledException(
                mayHaveHappened ? OperationOutcome.Unknown : OperationOutcome.DidNotHappen, ct);
        }

        if (end is not null)
        {
            ExceptionDispatchInfo.Throw(end);
        }

        return new BatchResult<TResult>(outcomes);
    }

    /// <summary>Runs the operations as one transaction.</summary>
    /// <param name="items">The operations, which are not run themselves.</param>
    /// <param name="fence">The fence of the whole; null for none.</param>
    /// <param name="ct">Ends the wait.</param>
    private async Task<BatchResult<TResult>> AtomicAsync<TResult>(
        Operation<TResult>[] items,
        Locks.Fence? fence,
        CancellationToken ct)
        where TResult : struct, IOperationResult<TResult>, IItemResult<TResult>
    {
        Check(items, Limits.TransactionItemsMax);
        ByteBuffer body = ByteBuffer.Rent();
        try
        {
            bool areReads = items[0].IsRead;
            if (areReads && fence is not null)
            {
                Abandon(items.AsSpan());
                throw OperationErrors.BadArgument("a batch of reads has no fence; nothing was sent");
            }

            int conditions = Write(body, items);
            Abandon(items.AsSpan());
            Task<TransactionReply> run = areReads
                ? MomentReads.RunAsync(coordinator, body.WrittenMemory, patience: null, ct)
                : coordinator.RunAsync(new CommitRequest { Body = body.WrittenMemory, Fence = fence }, ct);
            TransactionReply reply = await run.ConfigureAwait(coordinator.Connection.CapturesContext);
            return Read<TResult>(reply, conditions, items.Length);
        }
        finally
        {
            body.Return();
        }
    }

    /// <summary>Appends the items of the one command. Returns the number of conditions.</summary>
    private static int Write<TResult>(ByteBuffer body, Operation<TResult>[] items)
        where TResult : struct, IOperationResult<TResult>
    {
        if (!items[0].IsRead)
        {
            ReadOnlyMemory<byte>[] encoded = [.. items.Select(static item => Encode(item.ToCommand(0)))];
            return TransactionBody.WriteBatch(body, items.Length, i => encoded[i]);
        }

        foreach (Operation<TResult> item in items)
        {
            CommandList.Append(body, item.ToCommand(0));
        }

        return 0;
    }

    private static ReadOnlyMemory<byte> Encode(scoped in Command command)
    {
        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private static BatchResult<TResult> Read<TResult>(in TransactionReply reply, int conditions, int count)
        where TResult : struct, IItemResult<TResult>
    {
        ReadOnlySpan<byte> rest = reply.Outcomes.Span;
        for (int i = 0; i < conditions; i++)
        {
            OutcomeList.TryTake(ref rest, out _);
        }

        BatchOutcome<TResult>[] outcomes = new BatchOutcome<TResult>[count];
        for (int i = 0; i < count; i++)
        {
            if (!OutcomeList.TryTake(ref rest, out Outcome item))
            {
                throw OperationErrors.UnknownDescription("a batch");
            }

            KahunaValue? value = null;
            if (item.HasValue)
            {
                value = item.ValueIsNull ? KahunaValue.Null : new KahunaValue(item.Value.ToArray());
            }


            // Where a condition did not hold, the outcome is that of a look at the key.
            outcomes[i] = new BatchOutcome<TResult>(
                reply.Holds
                    ? TResult.Of(item.Status, new Revision(item.Revision), item.Number, value)
                    : item.Status == OutcomeStatus.NotFound
                    ? TResult.Of(OutcomeStatus.NotFound, Revision.None, 0, null)
                    : TResult.Of(OutcomeStatus.ConditionFailed, new Revision(item.Revision), item.Revision, null));
        }

        return new BatchResult<TResult>(outcomes);
    }

    /// <summary>Checks the batch as a whole; nothing was sent yet.</summary>
    private static void Check<TResult>(Operation<TResult>[] items, int countMax)
        where TResult : struct, IOperationResult<TResult>
    {
        KahunaException? refusal = items.Length == 0 || items.Length > countMax
            ? OperationErrors.BadArgument(string.Create(
                CultureInfo.InvariantCulture,
                $"the batch {(items.Length == 0 ? "is empty" : "has too many items")}; it must have 1 to "
                    + $"{countMax:N0}"))
            : null;
        for (int i = 0; i < items.Length && refusal is null; i++)
        {
            string? sentence = items[i].Request.Refusal?.Message.TrimEnd('.');
            if (sentence is null)
            {
                CommandCheck.IsGood(items[i].ToCommand(0), Limits.ValueBytesCeiling, out _, out sentence);
            }

            refusal = sentence is null
                ? null
                : OperationErrors.BadArgument(
                    string.Create(CultureInfo.InvariantCulture, $"item {i}: {sentence}; nothing was sent"));
        }

        if (refusal is not null)
        {
            Abandon(items.AsSpan());
            throw refusal;
        }
    }

    private static void Abandon<TResult>(ReadOnlySpan<Operation<TResult>> items)
        where TResult : struct, IOperationResult<TResult>
    {
        foreach (Operation<TResult> item in items)
        {
            item.Abandon();
        }
    }
}
