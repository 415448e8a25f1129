namespace Kahuna.Client.Outcomes;

/// <summary>The outcomes of a batch, one for each item, in the order of the items. Immutable.</summary>
/// <typeparam name="TResult">The result of one item.</typeparam>
public sealed class BatchResult<TResult>
    where TResult : struct
{
    internal BatchResult(BatchOutcome<TResult>[] items) => Items = items;

    /// <summary>The outcomes.</summary>
    public IReadOnlyList<BatchOutcome<TResult>> Items { get; }

    /// <summary>The outcome of one item, counted from 0.</summary>
    public BatchOutcome<TResult> this[int item] => Items[item];

    /// <summary>How many items failed. None of an atomic batch does: it fails as a whole.</summary>
    public int Failed => Items.Count(static item => item.Error is not null);

    /// <summary>
    /// Throws the error of the first item that failed, if one did. A condition that did not hold is no error.
    /// </summary>
    /// <exception cref="KahunaException">An item failed.</exception>
    public void ThrowIfAnyFailed()
    {
        foreach (BatchOutcome<TResult> item in Items)
        {
            if (item.Error is { } error)
            {
                throw new KahunaException(error.Code, error.Outcome, error.Message, error);
            }
        }
    }
}

/// <summary>The outcome of one item of a batch: a result or an error. Immutable.</summary>
/// <typeparam name="TResult">The result.</typeparam>
public readonly record struct BatchOutcome<TResult>
    where TResult : struct
{
    private readonly TResult _result;

    internal BatchOutcome(TResult result) => _result = result;

    internal BatchOutcome(KahunaException error) => Error = error;

    /// <summary>
    /// Why the item failed, and whether it took effect: see <see cref="KahunaException.Outcome"/>. Null: it did not.
    /// </summary>
    public KahunaException? Error { get; }

    /// <summary>The item's result.</summary>
    /// <exception cref="KahunaException">The item failed: <see cref="Error"/>.</exception>
    public TResult Result => Error is null
        ? _result
        : throw new KahunaException(Error.Code, Error.Outcome, Error.Message, Error);
}
