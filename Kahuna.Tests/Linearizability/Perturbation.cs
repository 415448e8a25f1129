namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Changes a history a little, so that it may not be linearizable any more. It stays a history. Stateless.
/// </summary>
internal static class Perturbation
{
    /// <summary>One random change of one random operation that was answered.</summary>
    public static List<HistoryOperation> Apply(Random random, IReadOnlyList<HistoryOperation> operations)
    {
        List<HistoryOperation> changed = [.. operations];
        int[] answered = [.. Enumerable.Range(0, changed.Count).Where(i => changed[i].Outcome == HistoryOutcome.Ok)];
        if (answered.Length == 0)
        {
            return changed;
        }

        int at = answered[random.Next(answered.Length)];
        HistoryOperation other = changed[answered[random.Next(answered.Length)]];
        changed[at] = Change(random, changed[at], other);
        return changed;
    }

    private static HistoryOperation Change(Random random, HistoryOperation operation, HistoryOperation other)
    {
        OperationResult result = operation.Result;
        long lengthNs = operation.ReturnNs!.Value - operation.CallNs;
        switch (random.Next(7))
        {
            case 0 or 1:
                return operation with
                {
                    Result = result with { Revision = Math.Max(0, (result.Revision ?? 1) + random.Next(-1, 2)) },
                };
            case 2 when operation.Kind == OperationKind.Get && other.Kind is OperationKind.Get or OperationKind.Set:
                return operation with
                {
                    Result = result with
                    {
                        Affirmed = true,
                        HasValue = true,
                        Value = other.Arguments.Value ?? other.Result.Value,
                    },
                };
            case 3 when operation.Kind == OperationKind.Increment && result.HasValue:
                return operation with
                {
                    Result = result with
                    {
                        Value = $"{long.Parse(result.Value!, System.Globalization.CultureInfo.InvariantCulture) / 2}",
                    },
                };
            case 4:
                return operation with
                {
                    Result = result with { Affirmed = result.Affirmed != true, HasValue = false, Value = null },
                };
            case 5:
                return operation with { CallNs = operation.CallNs + (lengthNs / 2) };
            default:
                return operation with { ReturnNs = operation.ReturnNs - (lengthNs / 2) };
        }
    }
}
