using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Connection;

/// <summary>
/// A pooled operation as its holders keep it: with the generation that they mean. A holder that comes too late (the
/// operation has ended, perhaps already serves another call) sees it by <see cref="IsPending"/>. A value; any thread.
/// </summary>
/// <param name="Operation">The operation.</param>
/// <param name="Generation">The one that the holder means.</param>
/// <param name="IsCancelable">A caller's token may end it at any moment; otherwise only its holder does.</param>
internal readonly record struct OperationRef(Operation Operation, int Generation, bool IsCancelable)
{
    /// <summary>The operation still waits for its end.</summary>
    public bool IsPending => Operation.IsPending(Generation);

    /// <summary>Takes the right to end the operation; true for exactly one holder.</summary>
    public bool TryEnd() => Operation.TryEnd(Generation);

    /// <summary>
    /// Keeps the operation from ending for the few instructions in which its holder writes to it; false when it has ended.
    /// An operation that no token can end is safe with its holder and needs no interlocked step.
    /// </summary>
    public bool TryHold() => IsCancelable ? Operation.TryHold(Generation) : Operation.IsPending(Generation);

    /// <summary>Ends a successful <see cref="TryHold"/>.</summary>
    public void Release()
    {
        if (IsCancelable)
        {
            Operation.Release(Generation);
        }
    }

    /// <summary>The session is forgotten: another one takes over what surely did not happen. False, and ended, when an earlier attempt may have; the operation is then held no more.</summary>
    public bool TryRenumber()
    {
        Operation.Session?.Forget();
        if (!Operation.MayHaveHappened && Operation.Session is not null)
        {
            Operation.DropNumber();
            return true;
        }

        Release();
        if (TryEnd())
        {
            Operation.Complete(new Outcome(OutcomeStatus.SessionUnknown));
        }

        return false;
    }
}
