using Google.Protobuf;
using Kahuna.Server.Api.Errors;
using Kahuna.Server.Api.Protos;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Server.Api;

/// <summary>
/// Turns the messages of the key/value service into commands and outcomes into messages. A command's bytes are those of
/// its message. Stateless, any thread.
/// </summary>
internal static class KeyValueMessages
{
    /// <exception cref="Grpc.Core.RpcException">INVALID_ARGUMENT: a field is missing or does not fit.</exception>
    public static Command ToCommand(SetKeyValueRequest request)
    {
        Value value = request.Value ?? throw OutcomeErrors.Build(
            Grpc.Core.StatusCode.InvalidArgument,
            "value is missing; send a Value without data to store null.",
            OutcomeErrors.DidNotHappen);
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
        AddName(ref command, request.Key, request.Durability);
        AddConditions(ref command, request.Conditions);
        return command;
    }

    /// <inheritdoc cref="ToCommand(SetKeyValueRequest)"/>
    public static Command ToCommand(DeleteKeyValueRequest request)
    {
        Command command = new()
        {
            Kind = CommandKind.Delete,
            Flags = (request.WithoutHistory ? CommandFlags.WithoutHistory : 0)
                | (request.ReturnPrevious ? CommandFlags.ReturnPrevious : 0),
        };
        AddFence(ref command, request.Fence);
        AddName(ref command, request.Key, request.Durability);
        AddConditions(ref command, request.Conditions);
        return command;
    }

    /// <inheritdoc cref="ToCommand(SetKeyValueRequest)"/>
    public static Command ToCommand(ExtendKeyValueRequest request)
    {
        Command command = new() { Kind = CommandKind.Extend, Flags = CommandFlags.Ttl, TtlMs = request.TtlMs };
        AddFence(ref command, request.Fence);
        AddName(ref command, request.Key, request.Durability);
        AddConditions(ref command, request.Conditions);
        return command;
    }

    /// <inheritdoc cref="ToCommand(SetKeyValueRequest)"/>
    public static Command ToCommand(IncrementKeyValueRequest request)
    {
        Command command = new() { Kind = CommandKind.Increment, Flags = CommandFlags.Number, Number = request.Amount };
        AddFence(ref command, request.Fence);
        AddName(ref command, request.Key, request.Durability);
        return command;
    }

    /// <inheritdoc cref="ToCommand(SetKeyValueRequest)"/>
    public static Command ToCommand(GetKeyValueRequest request) => Read(
        CommandKind.Get, request.Key, request.Durability, request.HasAtRevision ? request.AtRevision : null);

    /// <inheritdoc cref="ToCommand(SetKeyValueRequest)"/>
    public static Command ToCommand(ExistsKeyValueRequest request) => Read(
        CommandKind.Exists, request.Key, request.Durability, request.HasAtRevision ? request.AtRevision : null);

    /// <summary>Adds the fence, if there is one.</summary>
    public static void AddFence(ref Command command, Fence? fence)
    {
        if (fence is not null)
        {
            command.Flags |= CommandFlags.Fenced;
            command.FenceToken = fence.Token;
            command.FenceName = CommandText.Encode("fence resource", fence.Resource);
        }
    }

    public static SetKeyValueResponse ToSet(scoped in Outcome outcome) => new()
    {
        Set = outcome.Status == OutcomeStatus.Applied,
        Revision = outcome.Revision,
        Previous = ToValue(in outcome),
        PreviousRevision = KeyOutcome.PreviousOf(in outcome).Value,
    };

    public static DeleteKeyValueResponse ToDelete(scoped in Outcome outcome) => new()
    {
        Deleted = outcome.Status == OutcomeStatus.Applied,
        Found = outcome.Status == OutcomeStatus.Applied
            || (outcome.Status == OutcomeStatus.ConditionFailed && outcome.Revision > 0),
        Revision = outcome.Status == OutcomeStatus.NotFound ? 0 : outcome.Revision,
        Previous = ToValue(in outcome),
        PreviousRevision = KeyOutcome.PreviousOf(in outcome).Value,
    };

    public static ExtendKeyValueResponse ToExtend(scoped in Outcome outcome) => new()
    {
        Extended = outcome.Status == OutcomeStatus.Applied,
        Found = outcome.Status == OutcomeStatus.Applied
            || (outcome.Status == OutcomeStatus.ConditionFailed && outcome.Revision > 0),
        Revision = outcome.Status == OutcomeStatus.NotFound ? 0 : outcome.Revision,
    };

    public static GetKeyValueResponse ToGet(scoped in Outcome outcome)
    {
        GetKeyValueResponse response = new()
        {
            Found = outcome.Status == OutcomeStatus.Found,
            Value = ToValue(in outcome),
            Revision = outcome.Revision,
        };
        if (response.Found && KeyOutcome.RemainingMsOf(in outcome) is var remainingMs and >= 0)
        {
            response.RemainingTtlMs = remainingMs;
        }

        return response;
    }

    public static ExistsKeyValueResponse ToExists(scoped in Outcome outcome)
    {
        ExistsKeyValueResponse response =
            new() { Found = outcome.Status == OutcomeStatus.Found, Revision = outcome.Revision };
        if (response.Found && KeyOutcome.RemainingMsOf(in outcome) is var remainingMs and >= 0)
        {
            response.RemainingTtlMs = remainingMs;
        }

        return response;
    }

    private static Command Read(CommandKind kind, string key, Protos.Durability durability, long? atRevision)
    {
        Command command = new()
        {
            Kind = kind,
            Flags = atRevision is null ? 0 : CommandFlags.AtRevision,
            AtRevision = atRevision ?? 0,
        };
        AddName(ref command, key, durability);
        return command;
    }

    private static void AddName(ref Command command, string key, Protos.Durability durability)
    {
        command.Key = CommandText.Encode("key", key);
        command.Durability = DurabilityField.Read(durability);
    }

    private static void AddConditions(ref Command command, Conditions? conditions)
    {
        if (conditions is null)
        {
            return;
        }

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

    private static Value? ToValue(scoped in Outcome outcome)
    {
        if (!outcome.HasValue)
        {
            return null;
        }

        return outcome.ValueIsNull ? new Value() : new Value { Data = ByteString.CopyFrom(outcome.Value) };
    }
}
