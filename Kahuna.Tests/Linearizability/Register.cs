namespace Kahuna.Tests.Linearizability;

/// <summary>
/// The sequential rules of one key, as Kahuna.Server/State/StateMachine has them: what an operation does to a state, and whether
/// that agrees with what it was answered. Owned by one search.
/// </summary>
internal sealed class Register(ValueTable values)
{
    /// <summary>
    /// Applies operation <paramref name="number"/>. False when the answer would have been another one than was recorded.
    /// </summary>
    public bool TryApply(RegisterOperation operation, int number, RegisterState before, out RegisterState after)
    {
        after = before;
        switch (operation.Kind)
        {
            case OperationKind.Get:
                return Agrees(operation, before.Exists, before.Revision, before.Value);
            case OperationKind.Exists:
                return Agrees(operation, before.Exists, before.Revision);
            case OperationKind.Set:
                return TrySet(operation, number, before, out after);
            case OperationKind.Increment:
                return TryIncrement(operation, before, out after);
            default:
                return TryChangeExisting(operation, number, before, out after);
        }
    }

    /// <summary>What is left when the time to live has passed: every command and every read finds a deleted key, one revision further.</summary>
    public static RegisterState Expired(RegisterState state) => state.Removed();

    private static bool TrySet(RegisterOperation operation, int number, RegisterState before, out RegisterState after)
    {
        after = before;
        if (!ConditionsHold(operation, before))
        {
            return Refused(operation, before);
        }

        // A set without a time to live removes the one that was there.
        after = before.Written(operation.Value, operation.SetsDeadline ? number + 1 : 0);
        return Agrees(operation, true, after.Revision);
    }

    /// <summary>A key that does not exist counts as 0; the time to live stays.</summary>
    private bool TryIncrement(RegisterOperation operation, RegisterState before, out RegisterState after)
    {
        after = before;
        long sum = operation.By;
        if (!ConditionsHold(operation, before))
        {
            return Refused(operation, before);
        }

        if (before.Exists && (!values.IsInteger(before.Value, out long integer) || !TryAdd(integer, operation.By, out sum)))
        {
            return Refused(operation, before);
        }

        after = before.Written(values.NumberOf(sum), before.Deadline);
        return Agrees(operation, true, after.Revision, after.Value);
    }

    /// <summary>Delete and extend: without a key there is nothing to do, which is told before any condition.</summary>
    private static bool TryChangeExisting(RegisterOperation operation, int number, RegisterState before, out RegisterState after)
    {
        after = before;
        if (!before.Exists || !ConditionsHold(operation, before))
        {
            return Refused(operation, before);
        }

        after = operation.Kind == OperationKind.Delete ? before.Removed() : before with { Deadline = operation.SetsDeadline ? number + 1 : 0 };
        return Agrees(operation, true, after.Revision);
    }

    public static bool ConditionsHold(RegisterOperation operation, RegisterState state)
    {
        if (!operation.HasCondition)
        {
            return true;
        }

        return state.Exists
            ? !operation.OnlyIfAbsent
                && (operation.OnlyIfRevision == RegisterOperation.Anything || operation.OnlyIfRevision == state.Revision)
                && (operation.OnlyIfValue == RegisterOperation.Anything || operation.OnlyIfValue == state.Value)
            : !operation.OnlyIfPresent && operation.OnlyIfValue == RegisterOperation.Anything && operation.OnlyIfRevision == RegisterOperation.Anything;
    }

    /// <summary>Nothing was changed; the answer carries the current revision, and 0 without a key even if there was one.</summary>
    private static bool Refused(RegisterOperation operation, RegisterState state) => Agrees(operation, false, state.Exists ? state.Revision : 0);

    private static bool Agrees(RegisterOperation operation, bool affirmed, int revision, int value = ValueTable.Absent) =>
        !operation.IsKnown
        || ((operation.Affirmed is null || operation.Affirmed == affirmed)
            && (operation.ExpectedRevision == RegisterOperation.Anything || operation.ExpectedRevision == revision)
            && (operation.ExpectedValue == RegisterOperation.Anything || operation.ExpectedValue == value));

    private static bool TryAdd(long a, long b, out long sum)
    {
        sum = unchecked(a + b);
        return ((a ^ sum) & (b ^ sum)) >= 0;
    }
}
