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

    /// <summary>A condition of a transaction.</summary>
    /// <exception cref="Grpc.Core.RpcException">INVALID_ARGUMENT: a field is missing or does not fit.</exception>
    public static Command ToCommand(TransactionCondition condition, Protos.Durability durability)
    {
        Command command = new() { Kind = CommandKind.Exists };
        AddName(ref command, condition.Key, LevelOf(condition.Durability, durability));
        if (condition.NoKeys || condition.NoOtherKeys)
        {
            return RangeCondition.ToItem(
                command.Durability,
                command.Key,
                KeyRange.Of(command.Key.ToArray(), null, null).End,
                condition.NoKeys ? 0 : RangeCondition.AsNamed);
        }

        AddConditions(ref command, condition.ConditionCase switch
        {
            TransactionCondition.ConditionOneofCase.Absent when condition.Absent => new Conditions { IfAbsent = true },
            TransactionCondition.ConditionOneofCase.Present when condition.Present =>
                new Conditions { IfPresent = true },
            TransactionCondition.ConditionOneofCase.Value => new Conditions { IfValue = condition.Value },
            TransactionCondition.ConditionOneofCase.Revision => new Conditions { IfRevision = condition.Revision },
            _ => throw Invalid(
                "a condition has absent, present, no_keys or no_other_keys, which must be true, or value or revision"),
        });
        return command;
    }

    /// <summary>An operation of a transaction; it takes the transaction's durability if it names none.</summary>
    /// <exception cref="Grpc.Core.RpcException">INVALID_ARGUMENT: a field is missing or does not fit.</exception>
    public static Command ToCommand(TransactionOperation operation, Protos.Durability durability)
    {
        Command command;
        switch (operation.OperationCase)
        {
            case TransactionOperation.OperationOneofCase.Set:
                operation.Set.Durability = LevelOf(operation.Set.Durability, durability);
                command = ToCommand(operation.Set);
                break;
            case TransactionOperation.OperationOneofCase.Get:
                operation.Get.Durability = LevelOf(operation.Get.Durability, durability);
                command = ToCommand(operation.Get);
                break;
            case TransactionOperation.OperationOneofCase.Exists:
                operation.Exists.Durability = LevelOf(operation.Exists.Durability, durability);
                command = ToCommand(operation.Exists);
                break;
            case TransactionOperation.OperationOneofCase.Delete:
                operation.Delete.Durability = LevelOf(operation.Delete.Durability, durability);
                command = ToCommand(operation.Delete);
                break;
            case TransactionOperation.OperationOneofCase.Extend:
                operation.Extend.Durability = LevelOf(operation.Extend.Durability, durability);
                command = ToCommand(operation.Extend);
                break;
            case TransactionOperation.OperationOneofCase.Increment:
                operation.Increment.Durability = LevelOf(operation.Increment.Durability, durability);
                command = ToCommand(operation.Increment);
                break;
            default:
                throw Invalid("the operation is missing");
        }

        return command.Has(TransactionBody.ConditionFlags | CommandFlags.Fenced)
            ? throw Invalid("an operation has neither conditions nor a fence; those are the transaction's")
            : command;
    }

    /// <summary>The result of an operation of a transaction.</summary>
    public static TransactionOperationResult ToResult(TransactionOperation operation, scoped in Outcome outcome)
    {
        TransactionOperationResult result = new();
        switch (operation.OperationCase)
        {
            case TransactionOperation.OperationOneofCase.Set:
                result.Set = ToSet(in outcome);
                break;
            case TransactionOperation.OperationOneofCase.Get:
                result.Get = ToGet(in outcome);
                break;
            case TransactionOperation.OperationOneofCase.Exists:
                result.Exists = ToExists(in outcome);
                break;
            case TransactionOperation.OperationOneofCase.Delete:
                result.Delete = ToDelete(in outcome);
                break;
            case TransactionOperation.OperationOneofCase.Extend:
                result.Extend = ToExtend(in outcome);
                break;
            default:
                result.Increment = ToIncrement(in outcome);
                break;
        }

        return result;
    }

    public static IncrementKeyValueResponse ToIncrement(scoped in Outcome outcome) =>
        new() { Value = KeyOutcome.SumOf(in outcome), Revision = outcome.Revision };

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

    private static Protos.Durability LevelOf(Protos.Durability item, Protos.Durability whole) =>
        item == Protos.Durability.Unspecified ? whole : item;

    private static Grpc.Core.RpcException Invalid(string sentence) => OutcomeErrors.Build(
        Grpc.Core.StatusCode.InvalidArgument, sentence + ".", OutcomeErrors.DidNotHappen);

    private static Value? ToValue(scoped in Outcome outcome)
    {
        if (!outcome.HasValue)
        {
            return null;
        }

        return outcome.ValueIsNull ? new Value() : new Value { Data = ByteString.CopyFrom(outcome.Value) };
    }
}
