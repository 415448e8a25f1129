namespace Kahuna.Tests.Linearizability;

/// <summary>
/// The sequential rules of one key, as Kahuna.Server/State/StateMachine has them: what an operation does to a state,
/// and whether that agrees with what it was answered. Owned by one search.
/// </summary>
internal sealed class Register(ValueTable values)
{
    /// <summary>
    /// Applies operation <paramref name="number"/>. False when the answer would have been another one than was
    /// recorded. A deleted key may be forgotten at any moment: then its revisions go on above any that it had.
    /// </summary>
    public bool TryApply(RegisterOperation operation, int number, RegisterState before, out RegisterState after)
    {
        before = Compared(operation, before);
        after = before;
        switch (operation.Kind)
        {
            case OperationKind.Get:
                return Found(operation, ref after, before.Value);
            case OperationKind.Exists:
                return Found(operation, ref after);
            case OperationKind.Set:
                return TrySet(operation, number, before, out after);
            case OperationKind.Increment:
                return TryIncrement(operation, before, out after);
            default:
                return TryChangeExisting(operation, number, before, out after);
        }
    }

    /// <summary>
    /// Where a condition names the revision of a key whose revision is not known, its answer tells whether it is this
    /// one.
    /// </summary>
    private static RegisterState Compared(RegisterOperation operation, RegisterState state)
    {
        if (!state.IsAtLeast || !state.Exists || operation.OnlyIfRevision == RegisterOperation.Anything)
        {
            return state;
        }

        // A refusal for a key that is there tells its revision.
        if (operation is { IsKnown: true, Affirmed: false, ExpectedRevision: > 0 }
            && state.TryBe(operation.ExpectedRevision, out RegisterState told))
        {
            return told;
        }

        return operation.Affirmed == false
            ? operation.OnlyIfRevision == state.Revision ? state with { Revision = state.Revision + 1 } : state
            : state.TryBe(operation.OnlyIfRevision, out RegisterState same) ? same : state;
    }

    /// <summary>
    /// What is left when the time to live has passed: every command and every read finds a deleted key, one revision
    /// further.
    /// </summary>
    public static RegisterState Expired(RegisterState state) => state.Removed();

    private static bool TrySet(RegisterOperation operation, int number, RegisterState before, out RegisterState after)
    {
        after = before;
        if (!ConditionsHold(operation, before))
        {
            return Refused(operation, ref after);
        }

        // A set without a time to live removes the one that was there.
        after = before.Written(operation.Value, operation.SetsDeadline ? number + 1 : 0);
        return Agrees(operation, true, ref after);
    }

    /// <summary>A key that does not exist counts as 0; the time to live stays.</summary>
    private bool TryIncrement(RegisterOperation operation, RegisterState before, out RegisterState after)
    {
        after = before;
        long sum = operation.By;
        if (!ConditionsHold(operation, before))
        {
            return Refused(operation, ref after);
        }

        if (before.Exists
            && (!values.IsInteger(before.Value, out long integer) || !TryAdd(integer, operation.By, out sum)))
        {
            return Refused(operation, ref after);
        }

        after = before.Written(values.NumberOf(sum), before.Deadline);
        return Agrees(operation, true, ref after, after.Value);
    }

    /// <summary>Delete and extend: without a key there is nothing to do, which is told before any condition.</summary>
    private static bool TryChangeExisting(
        RegisterOperation operation, int number, RegisterState before, out RegisterState after)
    {
        after = before;
        if (!before.Exists || !ConditionsHold(operation, before))
        {
            return Refused(operation, ref after);
        }

        after = operation.Kind == OperationKind.Delete
            ? before.Removed()
            : before with { Deadline = operation.SetsDeadline ? number + 1 : 0 };
        return Agrees(operation, true, ref after);
    }

    public static bool ConditionsHold(RegisterOperation operation, RegisterState state)
    {
        if (!operation.HasCondition)
        {
            return true;
        }

        return state.Exists
            ? !operation.OnlyIfAbsent
                && (operation.OnlyIfRevision == RegisterOperation.Anything
                    || operation.OnlyIfRevision == state.Revision)
                && (operation.OnlyIfValue == RegisterOperation.Anything || operation.OnlyIfValue == state.Value)
            : !operation.OnlyIfPresent
                && operation.OnlyIfValue == RegisterOperation.Anything
                && operation.OnlyIfRevision == RegisterOperation.Anything;
    }

    /// <summary>A read. Without a key it tells the revision of the deletion, or 0 when that is forgotten.</summary>
    private static bool Found(RegisterOperation operation, ref RegisterState state, int value = ValueTable.Absent) =>
        !state.Exists && operation.ExpectedRevision == 0
            ? Agrees(operation, false, value)
            : Agrees(operation, state.Exists, ref state, value);

    /// <summary>
    /// Nothing was changed; the answer carries the current revision, and 0 without a key even if there was one.
    /// </summary>
    private static bool Refused(RegisterOperation operation, ref RegisterState state) =>
        state.Exists
            ? Agrees(operation, false, ref state)
            : Agrees(operation, false)
                && (!operation.IsKnown || operation.ExpectedRevision is RegisterOperation.Anything or 0);

    /// <summary>The answer leaves room for this, and may tell the state's revision.</summary>
    private static bool Agrees(
        RegisterOperation operation, bool affirmed, ref RegisterState state, int value = ValueTable.Absent) =>
        !operation.IsKnown
        || (Agrees(operation, affirmed, value)
            && (operation.ExpectedRevision == RegisterOperation.Anything
                || state.TryBe(operation.ExpectedRevision, out state)));

    private static bool Agrees(RegisterOperation operation, bool affirmed, int value = ValueTable.Absent) =>
        !operation.IsKnown
        || ((operation.Affirmed is null || operation.Affirmed == affirmed)
            && (operation.ExpectedValue == RegisterOperation.Anything || operation.ExpectedValue == value));

    private static bool TryAdd(long a, long b, out long sum)
    {
        sum = unchecked(a + b);
        return ((a ^ sum) & (b ^ sum)) >= 0;
    }
}
