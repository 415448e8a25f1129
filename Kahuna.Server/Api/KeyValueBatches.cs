using System.Globalization;
using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Protos;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>
/// Batches for any gRPC client: all items are checked before the first one is carried out. Items of a batch that is not
/// atomic are commands of their own, a few at a time; an atomic one is a transaction. Stateless, any thread.
/// </summary>
internal sealed class KeyValueBatches(UnaryExecutor calls, TransactionExecutor whole, int valueBytesMax)
{
    /// <summary>Items of a batch that are under way at a time.</summary>
    private const int UnderWayMax = 64;

    /// <summary>The same for reads, whose values wait in memory.</summary>
    private const int ReadsUnderWayMax = 16;

    public async Task<SetManyKeyValuesResponse> SetAsync(SetManyKeyValuesRequest request, ServerCallContext context)
    {
        SetManyKeyValuesResponse response = new();
        byte[][] items = Encode(request.Items, KeyValueMessages.ToCommand);
        ItemOutcome[] outcomes = await RunAsync(items, request.Atomic, request.Fence, context).ConfigureAwait(false);
        foreach (ItemOutcome item in outcomes)
        {
            response.Outcomes.Add(item.Error is { } error
                ? new SetOutcome { Error = error }
                : new SetOutcome { Result = KeyValueMessages.ToSet(item.Outcome) });
        }

        return response;
    }

    public async Task<GetManyKeyValuesResponse> GetAsync(GetManyKeyValuesRequest request, ServerCallContext context)
    {
        GetManyKeyValuesResponse response = new();
        byte[][] items = Encode(request.Items, KeyValueMessages.ToCommand);
        ItemOutcome[] outcomes = await RunAsync(items, request.Atomic, null, context).ConfigureAwait(false);
        foreach (ItemOutcome item in outcomes)
        {
            response.Outcomes.Add(item.Error is { } error
                ? new GetOutcome { Error = error }
                : new GetOutcome { Result = KeyValueMessages.ToGet(item.Outcome) });
        }

        return response;
    }

    public async Task<ExistsManyKeyValuesResponse> ExistsAsync(
        ExistsManyKeyValuesRequest request, ServerCallContext context)
    {
        ExistsManyKeyValuesResponse response = new();
        byte[][] items = Encode(request.Items, KeyValueMessages.ToCommand);
        ItemOutcome[] outcomes = await RunAsync(items, request.Atomic, null, context).ConfigureAwait(false);
        foreach (ItemOutcome item in outcomes)
        {
            response.Outcomes.Add(item.Error is { } error
                ? new ExistsOutcome { Error = error }
                : new ExistsOutcome { Result = KeyValueMessages.ToExists(item.Outcome) });
        }

        return response;
    }

    public async Task<DeleteManyKeyValuesResponse> DeleteAsync(
        DeleteManyKeyValuesRequest request, ServerCallContext context)
    {
        DeleteManyKeyValuesResponse response = new();
        byte[][] items = Encode(request.Items, KeyValueMessages.ToCommand);
        ItemOutcome[] outcomes = await RunAsync(items, request.Atomic, request.Fence, context).ConfigureAwait(false);
        foreach (ItemOutcome item in outcomes)
        {
            response.Outcomes.Add(item.Error is { } error
                ? new DeleteOutcome { Error = error }
                : new DeleteOutcome { Result = KeyValueMessages.ToDelete(item.Outcome) });
        }

        return response;
    }

    private delegate Command Encoder<in TRequest>(TRequest request);

    /// <summary>Encodes and checks all items; nothing is carried out yet.</summary>
    private byte[][] Encode<TRequest>(IReadOnlyList<TRequest> items, Encoder<TRequest> encode)
    {
        if (items.Count is 0 or > Limits.BatchItemsMax)
        {
            throw Invalid(string.Create(
                CultureInfo.InvariantCulture,
                $"the batch has {items.Count:N0} items; it must have 1 to {Limits.BatchItemsMax:N0}"));
        }

        byte[][] encoded = new byte[items.Count][];
        ByteBuffer buffer = ByteBuffer.Rent();
        for (int i = 0; i < encoded.Length; i++)
        {
            try
            {
                Command command = encode(items[i]);
                if (!CommandCheck.IsGood(in command, valueBytesMax, out _, out string? sentence))
                {
                    throw Invalid(sentence!);
                }

                buffer.Length = 0;
                command.Write(buffer);
                encoded[i] = buffer.Written.ToArray();
            }
            catch (RpcException refused)
            {
                buffer.Return();
                throw Invalid(string.Create(
                    CultureInfo.InvariantCulture,
                    $"item {i}: {refused.Status.Detail.TrimEnd('.')}; nothing was carried out"));
            }
        }

        buffer.Return();
        return encoded;
    }

    private Task<ItemOutcome[]> RunAsync(byte[][] items, bool isAtomic, Fence? fence, ServerCallContext context)
    {
        if (isAtomic)
        {
            return AtomicAsync(items, fence, context);
        }

        return fence is null
            ? EachAsync(items, context)
            : throw Invalid("fence is set; without atomic, each item has a fence of its own");
    }

    private async Task<ItemOutcome[]> EachAsync(byte[][] items, ServerCallContext context)
    {
        bool areReads = CommandKinds.IsRead((CommandKind)items[0][0]);
        if (!areReads)
        {
            for (int i = 0; i < items.Length; i++)
            {
                items[i] = Number(items[i], i, context);
            }
        }

        ItemOutcome[] outcomes = new ItemOutcome[items.Length];
        int step = areReads ? ReadsUnderWayMax : UnderWayMax;
        long bytes = 0;
        for (int begin = 0; begin < items.Length; begin += step)
        {
            int count = Math.Min(step, items.Length - begin);
            ItemOutcome[] some = bytes > Limits.TransactionBytesMax
                ? [.. Enumerable.Repeat(ItemOutcome.TooLarge, count)]
                : await Task.WhenAll(items.AsSpan(begin, count).ToArray().Select(item => RunAsync(item, context)))
                    .ConfigureAwait(false);
            for (int i = 0; i < count; i++)
            {
                bytes += some[i].ValueBytes;
                outcomes[begin + i] = areReads && bytes > Limits.TransactionBytesMax && some[i].ValueBytes > 0
                    ? ItemOutcome.TooLarge
                    : some[i];
            }
        }

        return outcomes;
    }

    private async Task<ItemOutcome> RunAsync(byte[] item, ServerCallContext context)
    {
        try
        {
            return new ItemOutcome(await ExecuteAsync(item, context).ConfigureAwait(false), null);
        }
        catch (RpcException failed)
        {
            return new ItemOutcome(null, new ItemError
            {
                Code = (int)failed.StatusCode,
                Message = failed.Status.Detail,
                Outcome = failed.Trailers.GetValue(OutcomeErrors.OutcomeTrailer) ?? OutcomeErrors.Unknown,
            });
        }
    }

    private async Task<ItemOutcome[]> AtomicAsync(byte[][] items, Fence? fence, ServerCallContext context)
    {
        bool areReads = CommandKinds.IsRead((CommandKind)items[0][0]);
        ByteBuffer body = ByteBuffer.Rent();
        int conditions = areReads ? WriteReads(body, items) : WriteTransaction(body, items);
        ByteBuffer command = ToCommand(body, areReads, fence, context);
        byte[] bytes = await whole.ExecuteAsync(command, context.TimeLeft(), context.CancellationToken)
            .ConfigureAwait(false);
        return Read(bytes, conditions, items.Length);
    }

    private static ByteBuffer ToCommand(ByteBuffer body, bool areReads, Fence? fence, ServerCallContext context)
    {
        ReadOnlySpan<byte> list = body.Written[(areReads ? 0 : TransactionBody.HeaderBytes)..];
        CommandList.TryTake(ref list, out Command first);
        Command command = new()
        {
            Kind = areReads ? CommandKind.GetMany : CommandKind.Transaction,
            Durability = first.Durability,
            Key = first.Key,
            Value = body.Written,
        };
        if (!areReads)
        {
            KeyValueMessages.AddFence(ref command, fence);
            CallNumbers.AddTo(ref command, context);
        }

        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        body.Return();
        return buffer;
    }

    private static int WriteReads(ByteBuffer body, byte[][] items)
    {
        foreach (byte[] item in items)
        {
            Command.TryRead(item, out Command command);
            CommandList.Append(body, in command);
        }

        return 0;
    }

    /// <inheritdoc cref="TransactionBody.WriteBatch"/>
    private static int WriteTransaction(ByteBuffer body, byte[][] items) =>
        TransactionBody.WriteBatch(body, items.Length, i => items[i]);

    private static ItemOutcome[] Read(byte[] bytes, int conditions, int count)
    {
        Outcome.TryRead(bytes, out Outcome outcome);
        ReadOnlySpan<byte> rest = outcome.Value;
        for (int i = 0; i < conditions; i++)
        {
            OutcomeList.TryTake(ref rest, out _);
        }

        ItemOutcome[] outcomes = new ItemOutcome[count];
        for (int i = 0; i < count; i++)
        {
            ReadOnlySpan<byte> before = rest;
            if (!OutcomeList.TryTake(ref rest, out Outcome item))
            {
                throw new InvalidOperationException("The outcomes of a batch cannot be read.");
            }

            outcomes[i] = new ItemOutcome(
                outcome.Status == OutcomeStatus.ConditionFailed
                    ? OutcomeList.AsNotCarriedOut(in item)
                    : before[OutcomeList.ItemHeaderBytes..^rest.Length].ToArray(),
                null);
        }

        return outcomes;
    }

    private static byte[] Number(byte[] item, int index, ServerCallContext context)
    {
        Command.TryRead(item, out Command command);
        CallNumbers.AddTo(ref command, context, index);
        if (!command.Has(CommandFlags.Session))
        {
            return item;
        }

        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private Task<byte[]> ExecuteAsync(byte[] command, ServerCallContext context)
    {
        ByteBuffer buffer = ByteBuffer.Rent(command.Length);
        buffer.Append(command);
        return calls.ExecuteAsync(buffer, context.TimeLeft(), context.CancellationToken);
    }

    private static RpcException Invalid(string sentence) =>
        OutcomeErrors.Build(StatusCode.InvalidArgument, sentence + ".", OutcomeErrors.DidNotHappen);

    /// <summary>How one item ended: the bytes of its outcome, or an error. Immutable.</summary>
    private readonly record struct ItemOutcome(byte[]? Bytes, ItemError? Error)
    {
        /// <summary>The answer has no room for the item's value.</summary>
        public static ItemOutcome TooLarge { get; } = new(null, new ItemError
        {
            Code = (int)StatusCode.ResourceExhausted,
            Message = "The values of the answer are larger than 4 MiB; ask for this key in another call.",
            Outcome = OutcomeErrors.DidNotHappen,
        });

        public Outcome Outcome
        {
            get
            {
                Outcome.TryRead(Bytes, out Outcome outcome);
                return outcome;
            }
        }

        public int ValueBytes => (Bytes?.Length ?? Outcome.HeaderBytes) - Outcome.HeaderBytes;
    }
}
