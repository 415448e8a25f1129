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
using Operations = Google.Protobuf.Collections.RepeatedField<Kahuna.Server.Api.Protos.TransactionOperation>;

namespace Kahuna.Server.Api;

/// <summary>
/// Transactions for any gRPC client: encodes a request and decodes its outcome. Stateless, any thread.
/// </summary>
internal sealed class TransactionsService(TransactionExecutor calls, int valueBytesMax) : Transactions.TransactionsBase
{
    public override async Task<ExecuteTransactionResponse> ExecuteTransaction(
        ExecuteTransactionRequest request, ServerCallContext context)
    {
        byte[] bytes = await calls.ExecuteAsync(Encode(request, context), context.TimeLeft(), context.CancellationToken)
            .ConfigureAwait(false);
        return Read(request, bytes);
    }

    private ByteBuffer Encode(ExecuteTransactionRequest request, ServerCallContext context)
    {
        RequireCount("conditions", request.Conditions.Count);
        RequireCount("operations", Math.Max(request.Then.Count, request.Otherwise.Count));
        if (request.Then.Count + request.Otherwise.Count == 0)
        {
            throw Invalid("the transaction has no operations");
        }

        ByteBuffer body = ByteBuffer.Rent();
        try
        {
            TransactionBody.WriteHeader(body, request.Conditions.Count, request.Then.Count, request.Otherwise.Count);
            for (int i = 0; i < request.Conditions.Count; i++)
            {
                Append(body, request.Conditions[i], request.Durability, i);
            }

            Append(body, request.Then, request.Durability, "then");
            Append(body, request.Otherwise, request.Durability, "otherwise");
            ReadOnlySpan<byte> items = body.Written[TransactionBody.HeaderBytes..];
            CommandList.TryTake(ref items, out Command first);
            Command command = new()
            {
                Kind = CommandKind.Transaction,
                Durability = first.Durability,
                Key = first.Key,
                Value = body.Written,
            };
            KeyValueMessages.AddFence(ref command, request.Fence);
            CallNumbers.AddTo(ref command, context);
            ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
            command.Write(buffer);
            return buffer;
        }
        finally
        {
            body.Return();
        }
    }

    private void Append(ByteBuffer body, TransactionCondition condition, Protos.Durability durability, int index)
    {
        try
        {
            Append(body, KeyValueMessages.ToCommand(condition, durability));
        }
        catch (RpcException refused)
        {
            throw AtItem("condition", index, refused);
        }
    }

    private void Append(ByteBuffer body, Operations operations, Protos.Durability durability, string list)
    {
        for (int i = 0; i < operations.Count; i++)
        {
            try
            {
                Append(body, KeyValueMessages.ToCommand(operations[i], durability));
            }
            catch (RpcException refused)
            {
                throw AtItem($"operation of {list}", i, refused);
            }
        }
    }

    private void Append(ByteBuffer body, Command item)
    {
        if (CommandCheck.ItemRefusal(in item, valueBytesMax) is { } sentence)
        {
            throw Invalid(sentence);
        }

        CommandList.Append(body, in item);
    }

    private static ExecuteTransactionResponse Read(ExecuteTransactionRequest request, byte[] bytes)
    {
        Outcome.TryRead(bytes, out Outcome outcome);
        ExecuteTransactionResponse response = new() { Succeeded = outcome.Status != OutcomeStatus.ConditionFailed };
        ReadOnlySpan<byte> rest = outcome.Value;
        for (int i = 0; i < request.Conditions.Count; i++)
        {
            Outcome item = Take(ref rest);
            response.Conditions.Add(new TransactionConditionResult
            {
                Held = item.Status == OutcomeStatus.Applied,
                Revision = item.Revision,
            });
        }

        foreach (TransactionOperation operation in response.Succeeded ? request.Then : request.Otherwise)
        {
            response.Results.Add(KeyValueMessages.ToResult(operation, Take(ref rest)));
        }

        return response;
    }

    private static Outcome Take(ref ReadOnlySpan<byte> rest) =>
        OutcomeList.TryTake(ref rest, out Outcome item)
            ? item
            : throw new InvalidOperationException("The outcomes of a transaction cannot be read.");

    private static void RequireCount(string what, int count)
    {
        if (count > Limits.TransactionItemsMax)
        {
            throw Invalid(string.Create(
                CultureInfo.InvariantCulture,
                $"the transaction has {count:N0} {what}; the limit is {Limits.TransactionItemsMax:N0}"));
        }
    }

    private static RpcException AtItem(string noun, int index, RpcException refused) => Invalid(string.Create(
        CultureInfo.InvariantCulture,
        $"{noun} {index + 1:N0}: {refused.Status.Detail.TrimEnd('.')}; nothing was carried out"));

    private static RpcException Invalid(string sentence) =>
        OutcomeErrors.Build(StatusCode.InvalidArgument, sentence + ".", OutcomeErrors.DidNotHappen);
}
