namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Contradictions that show without a search, because they hold whatever the operations of unknown outcome did. Most
/// faults of a server that tells revisions are of this kind. Stateless; any thread.
/// </summary>
internal static class QuickRefutation
{
    public static bool Refutes(KeyHistory history)
    {
        ReadOnlySpan<RegisterOperation> known = history.Operations.AsSpan(0, history.Known);
        List<Sighting> sightings = [];
        foreach (RegisterOperation operation in known)
        {
            if (operation is { Kind: OperationKind.Set, HasCondition: false, Affirmed: false })
            {
                // There was nothing that could have refused it.
                return true;
            }

            if (Of(operation) is { } sighting)
            {
                sightings.Add(sighting);
            }
        }

        sightings.Sort((a, b) => (a.Revision, !a.IsWrite).CompareTo((b.Revision, !b.IsWrite)));
        return Disagree(sightings) || GoBack(sightings);
    }

    /// <summary>At one revision there was one write and one value.</summary>
    private static bool Disagree(List<Sighting> sightings)
    {
        int? value = null;
        bool? exists = null;
        for (int i = 0; i < sightings.Count; i++)
        {
            Sighting one = sightings[i];
            bool isFirst = i == 0 || sightings[i - 1].Revision != one.Revision;
            value = isFirst ? null : value;
            exists = isFirst ? null : exists;
            if ((one.IsWrite && !isFirst)
                || (value ?? one.Value) != (one.Value ?? value)
                || (exists ?? one.Exists) != one.Exists)
            {
                return true;
            }

            value ??= one.Value;
            exists ??= one.Exists;
        }

        return false;
    }

    /// <summary>One that was answered before another began cannot have come after it.</summary>
    private static bool GoBack(List<Sighting> sightings)
    {
        long latestCallNs = long.MinValue;
        for (int i = 0; i < sightings.Count;)
        {
            int next = i;
            while (next < sightings.Count
                && (sightings[next].Revision, sightings[next].IsWrite) == (sightings[i].Revision, sightings[i].IsWrite))
            {
                if (sightings[next].Operation.ReturnNs < latestCallNs)
                {
                    return true;
                }

                next++;
            }

            for (; i < next; i++)
            {
                latestCallNs = Math.Max(latestCallNs, sightings[i].Operation.CallNs);
            }
        }

        return false;
    }

    /// <summary>What an answer says of one revision of the key; null when it says nothing.</summary>
    private static Sighting? Of(RegisterOperation operation)
    {
        bool isRead = operation.Kind is OperationKind.Get or OperationKind.Exists;
        if (operation.ExpectedRevision == RegisterOperation.Anything
            || operation.Affirmed is not { } affirmed
            || operation.ExpectedRevision == 0)
        {
            return null;
        }

        bool isWrite = affirmed
            && (operation.Kind is OperationKind.Set or OperationKind.Delete or OperationKind.Increment);
        int? value = operation.Kind == OperationKind.Set && affirmed ? operation.Value
            : operation.ExpectedValue == RegisterOperation.Anything ? null
            : operation.ExpectedValue;

        // A refusal that tells a revision other than 0 tells that there is a key.
        bool exists = isRead ? affirmed : operation.Kind != OperationKind.Delete || !affirmed;
        return new Sighting(operation, operation.ExpectedRevision, isWrite, exists, value);
    }

    /// <summary>What one answer says of the key at a revision.</summary>
    private sealed record Sighting(RegisterOperation Operation, long Revision, bool IsWrite, bool Exists, int? Value);
}
