using Kahuna.Client.Outcomes;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Transactions;

/// <summary>How a transaction ended. Immutable.</summary>
public sealed class TransactionResult
{
    internal TransactionResult(
        bool succeeded, IReadOnlyList<ConditionResult> conditions, IReadOnlyList<KeyOperationResult> results)
    {
        Succeeded = succeeded;
        Conditions = conditions;
        Results = results;
    }

    /// <summary>
    /// True when all conditions held, and the operations of <see cref="ConditionalTransaction.Then"/> were carried out.
    /// </summary>
    public bool Succeeded { get; }

    /// <summary>One result per condition, in their order.</summary>
    public IReadOnlyList<ConditionResult> Conditions { get; }

    /// <summary>One result per operation that was carried out, in their order.</summary>
    public IReadOnlyList<KeyOperationResult> Results { get; }

    /// <summary>The result of one operation, counted from 0.</summary>
    public KeyOperationResult this[int operation] => Results[operation];
}

/// <summary>How a condition of a transaction was judged. A value.</summary>
/// <param name="Held">The condition held.</param>
/// <param name="Revision">The key's revision then; 0 when it did not exist.</param>
public readonly record struct ConditionResult(bool Held, Revision Revision);

/// <summary>The result of one operation of a transaction. Immutable; values belong to the caller.</summary>
public sealed class KeyOperationResult
{
    private readonly KeyOperation _operation;
    private readonly OutcomeStatus _status;
    private readonly long _number;
    private readonly KahunaValue? _value;

    internal KeyOperationResult(
        KeyOperation operation, OutcomeStatus status, Revision revision, long number, KahunaValue? value)
    {
        _operation = operation;
        _status = status;
        Revision = revision;
        _number = number;
        _value = value;
    }

    /// <summary>The key.</summary>
    public string Key => _operation.Key;

    /// <summary>The key's revision after the operation; 0 when it does not exist.</summary>
    public Revision Revision { get; }

    /// <summary>The result of a <see cref="KeyOperation.Get"/>.</summary>
    /// <exception cref="InvalidOperationException">The operation was another one.</exception>
    public GetResult AsGet() => As<GetResult>(CommandKind.Get, "get");

    /// <summary>The result of a <see cref="KeyOperation.Exists"/>.</summary>
    /// <inheritdoc cref="AsGet"/>
    public ExistsResult AsExists() => As<ExistsResult>(CommandKind.Exists, "exists");

    /// <summary>The result of a <see cref="KeyOperation.Set"/>.</summary>
    /// <inheritdoc cref="AsGet"/>
    public SetResult AsSet() => As<SetResult>(CommandKind.Set, "set");

    /// <summary>The result of a <see cref="KeyOperation.Delete"/>.</summary>
    /// <inheritdoc cref="AsGet"/>
    public DeleteResult AsDelete() => As<DeleteResult>(CommandKind.Delete, "delete");

    /// <summary>The result of a <see cref="KeyOperation.Extend"/>.</summary>
    /// <inheritdoc cref="AsGet"/>
    public ExtendResult AsExtend() => As<ExtendResult>(CommandKind.Extend, "extend");

    /// <summary>The result of a <see cref="KeyOperation.Increment"/>.</summary>
    /// <inheritdoc cref="AsGet"/>
    public IncrementResult AsIncrement() => As<IncrementResult>(CommandKind.Increment, "increment");

    private TResult As<TResult>(CommandKind kind, string name)
        where TResult : struct, IItemResult<TResult> =>
        _operation.Kind == kind
            ? TResult.Of(_status, Revision, _number, _value)
            : throw new InvalidOperationException($"The operation on \"{Key}\" was no {name}.");
}
