using Google.Protobuf;
using Grpc.Core;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Protos;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>
/// The key/value methods for any gRPC client. Each encodes its message as a command and decodes the outcome.
/// Stateless, any thread.
/// </summary>
internal sealed class KeyValuesService(UnaryExecutor calls, ScanPages scans) : Protos.KeyValues.KeyValuesBase
{
    public override async Task<SetKeyValueResponse> SetKeyValue(SetKeyValueRequest request, ServerCallContext context)
    {
        Value value = request.Value ?? throw Invalid("value is missing; send a Value without data to store null.");
        Command command = new()
        {
            Kind = CommandKind.Set,
            Value = value.HasData ? value.Data.Span : default,
            Flags = (value.HasData ? 0 : CommandFlags.NullValue)
                | (request.WithoutHistory ? CommandFlags.WithoutHistory : 0)
                | (request.ReturnPrevious ? CommandFlags.ReturnPrevious : 0)
                | (request.HasTtlMs ? CommandFlags.Ttl : 0),
            TtlMs = request.TtlMs,
        };
        AddFence(ref command, request.Fence);
        byte[] bytes = await calls.ExecuteAsync(
            Encode(ref command, request.Key, request.Durability, request.Conditions, context),
            context.TimeLeft(),
            context.CancellationToken).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        return new SetKeyValueResponse
        {
            Set = outcome.Status == OutcomeStatus.Applied,
            Revision = outcome.Revision,
            Previous = ToValue(outcome),
            PreviousRevision = KeyOutcome.PreviousOf(in outcome).Value,
        };
    }

    public override async Task<GetKeyValueResponse> GetKeyValue(GetKeyValueRequest request, ServerCallContext context)
    {
        byte[] bytes = await ReadAsync(
            CommandKind.Get,
            request.Key,
            request.Durability,
            request.HasAtRevision ? request.AtRevision : null,
            context).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        GetKeyValueResponse response = new()
        {
            Found = outcome.Status == OutcomeStatus.Found,
            Value = ToValue(outcome),
            Revision = outcome.Revision,
        };
        if (response.Found && KeyOutcome.RemainingMsOf(in outcome) is var remainingMs and >= 0)
        {
            response.RemainingTtlMs = remainingMs;
        }

        return response;
    }

    public override async Task<ExistsKeyValueResponse> ExistsKeyValue(
        ExistsKeyValueRequest request, ServerCallContext context)
    {
        byte[] bytes = await ReadAsync(
            CommandKind.Exists,
            request.Key,
            request.Durability,
            request.HasAtRevision ? request.AtRevision : null,
            context).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        ExistsKeyValueResponse response =
            new() { Found = outcome.Status == OutcomeStatus.Found, Revision = outcome.Revision };
        if (response.Found && KeyOutcome.RemainingMsOf(in outcome) is var remainingMs and >= 0)
        {
            response.RemainingTtlMs = remainingMs;
        }

        return response;
    }

    public override async Task<DeleteKeyValueResponse> DeleteKeyValue(
        DeleteKeyValueRequest request, ServerCallContext context)
    {
        Command command = new()
        {
            Kind = CommandKind.Delete,
            Flags = (request.WithoutHistory ? CommandFlags.WithoutHistory : 0)
                | (request.ReturnPrevious ? CommandFlags.ReturnPrevious : 0),
        };
        AddFence(ref command, request.Fence);
        byte[] bytes = await calls.ExecuteAsync(
            Encode(ref command, request.Key, request.Durability, request.Conditions, context),
            context.TimeLeft(),
            context.CancellationToken).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        return new DeleteKeyValueResponse
        {
            Deleted = outcome.Status == OutcomeStatus.Applied,
            Found = outcome.Status == OutcomeStatus.Applied
                || (outcome.Status == OutcomeStatus.ConditionFailed && outcome.Revision > 0),
            Revision = outcome.Status == OutcomeStatus.NotFound ? 0 : outcome.Revision,
            Previous = ToValue(outcome),
            PreviousRevision = KeyOutcome.PreviousOf(in outcome).Value,
        };
    }

    public override async Task<ExtendKeyValueResponse> ExtendKeyValue(
        ExtendKeyValueRequest request, ServerCallContext context)
    {
        Command command = new() { Kind = CommandKind.Extend, Flags = CommandFlags.Ttl, TtlMs = request.TtlMs };
        AddFence(ref command, request.Fence);
        byte[] bytes = await calls.ExecuteAsync(
            Encode(ref command, request.Key, request.Durability, request.Conditions, context),
            context.TimeLeft(),
            context.CancellationToken).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        return new ExtendKeyValueResponse
        {
            Extended = outcome.Status == OutcomeStatus.Applied,
            Found = outcome.Status == OutcomeStatus.Applied
                || (outcome.Status == OutcomeStatus.ConditionFailed && outcome.Revision > 0),
            Revision = outcome.Status == OutcomeStatus.NotFound ? 0 : outcome.Revision,
        };
    }

    public override async Task<IncrementKeyValueResponse> IncrementKeyValue(
        IncrementKeyValueRequest request, ServerCallContext context)
    {
        Command command = new() { Kind = CommandKind.Increment, Flags = CommandFlags.Number, Number = request.Amount };
        AddFence(ref command, request.Fence);
        byte[] bytes = await calls.ExecuteAsync(
            Encode(ref command, request.Key, request.Durability, null, context),
            context.TimeLeft(),
            context.CancellationToken).ConfigureAwait(false);
        Outcome.TryRead(bytes, out Outcome outcome);
        return new IncrementKeyValueResponse { Value = KeyOutcome.SumOf(in outcome), Revision = outcome.Revision };
    }

    public override Task<ScanKeyValuesResponse> ScanKeyValues(
        ScanKeyValuesRequest request, ServerCallContext context) => scans.ReadAsync(request, context);

    public override Task<CountKeyValuesResponse> CountKeyValues(
        CountKeyValuesRequest request, ServerCallContext context) => scans.CountAsync(request, context);

    public override Task StreamKeyValues(
        StreamKeyValuesRequest request,
        IServerStreamWriter<StreamKeyValuesResponse> responseStream,
        ServerCallContext context) => scans.StreamAsync(request, responseStream, context);

    private Task<byte[]> ReadAsync(
        CommandKind kind, string key, Protos.Durability durability, long? atRevision, ServerCallContext context)
    {
        Command command = new()
        {
            Kind = kind,
            Flags = atRevision is null ? 0 : CommandFlags.AtRevision,
            AtRevision = atRevision ?? 0,
        };
        return calls.ExecuteAsync(
            Encode(ref command, key, durability, null, null), context.TimeLeft(), context.CancellationToken);
    }

    private static void AddFence(ref Command command, Fence? fence)
    {
        if (fence is not null)
        {
            command.Flags |= CommandFlags.Fenced;
            command.FenceToken = fence.Token;
            command.FenceName = CommandText.Encode("fence resource", fence.Resource);
        }
    }

    private static ByteBuffer Encode(
        ref Command command,
        string key,
        Protos.Durability durability,
        Conditions? conditions,
        ServerCallContext? numbered)
    {
        command.Key = CommandText.Encode("key", key);
        command.Durability = DurabilityField.Read(durability);
        if (conditions is not null)
        {
            command.Flags |= (conditions.IfAbsent ? CommandFlags.IfAbsent : 0)
                | (conditions.IfPresent ? CommandFlags.IfPresent : 0)
                | (conditions.HasIfRevision ? CommandFlags.IfRevision : 0);
            command.ComparedRevision = conditions.IfRevision;
            if (conditions.IfValue is { } compared)
            {
                command.Flags |= CommandFlags.IfValue | (compared.HasData ? 0 : CommandFlags.NullCompared);
                command.ComparedValue = compared.HasData ? compared.Data.Span : default;
            }
        }

        if (numbered is not null)
        {
            CallNumbers.AddTo(ref command, numbered);
        }

        ByteBuffer buffer = ByteBuffer.Rent(command.EncodedBytes);
        command.Write(buffer);
        return buffer;
    }

    private static Value? ToValue(scoped in Outcome outcome)
    {
        if (!outcome.HasValue)
        {
            return null;
        }

        return outcome.ValueIsNull ? new Value() : new Value { Data = ByteString.CopyFrom(outcome.Value) };
    }

    private static RpcException Invalid(string sentence) =>
        OutcomeErrors.Build(StatusCode.InvalidArgument, sentence, OutcomeErrors.DidNotHappen);
}
