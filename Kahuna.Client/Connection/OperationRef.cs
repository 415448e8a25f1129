namespace Kahuna.Client.Connection;

/// <summary>
/// A pooled operation as its holders keep it: with the generation that they mean. A holder that comes too late (the
/// operation has ended, perhaps already serves another call) sees it by <see cref="IsPending"/>. A value; any thread.
/// </summary>
internal readonly record struct OperationRef(Operation Operation, int Generation)
{
    /// <summary>The operation still waits for its end.</summary>
    public bool IsPending => Operation.IsPending(Generation);

    /// <summary>Takes the right to end the operation; true for exactly one holder.</summary>
    public bool TryEnd() => Operation.TryEnd(Generation);
}
