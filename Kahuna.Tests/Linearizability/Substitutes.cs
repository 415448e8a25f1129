namespace Kahuna.Tests.Linearizability;

/// <summary>
/// For each operation those that can be taken in its place, and leave no less for later: whatever order there is with
/// the operation at some place, there is one with the substitute there. So of many that are alike the search tries one.
/// An operation that gives the key a time to live has none, because its deadline depends on its own call. Not changed
/// after it was made.
/// </summary>
internal sealed class Substitutes
{
    private readonly int[][] _substitutes;

    /// <param name="operations">First the answered ones, then those of unknown outcome, each in the order of their
    /// calls.</param>
    public Substitutes(RegisterOperation[] operations)
    {
        _substitutes = new int[operations.Length][];
        Array.Fill(_substitutes, []);
        IEnumerable<int> candidates = Enumerable.Range(0, operations.Length)
            .Where(number => !operations[number].ChangesNothing && !operations[number].SetsDeadline);
        foreach (IGrouping<Effect, int> alike in candidates.GroupBy(number => Effect.Of(operations[number])))
        {
            int[] group = [.. alike];
            foreach (int number in group.Length > 1 ? group : [])
            {
                _substitutes[number] =
                    [.. group.Where(other => other != number && CanReplace(operations, other, number))];
            }
        }
    }

    public ReadOnlySpan<int> Of(int number) => _substitutes[number];

    private static bool CanReplace(RegisterOperation[] operations, int other, int number)
    {
        RegisterOperation one = operations[number];
        RegisterOperation substitute = operations[other];
        bool isNoBetter = IsNoBetter(substitute, one);
        bool isAlike = isNoBetter && IsNoBetter(one, substitute);

        // One that was answered has to be taken sooner or later: the one that returned earlier comes first. One of
        // unknown outcome may be left over, so the less it can do, the sooner it is taken.
        return one.IsKnown ? isAlike && (substitute.ReturnNs, other).CompareTo((one.ReturnNs, number)) < 0
            : isNoBetter && (other < number || !isAlike);
    }

    /// <summary>
    /// It has the same conditions, or more. Another revision is no further condition: where the key's revision is not
    /// known, one that names it takes place at that revision only, and leaves less for later.
    /// </summary>
    private static bool IsNoBetter(RegisterOperation other, RegisterOperation one) =>
        (!one.OnlyIfAbsent || other.OnlyIfAbsent)
        && (!one.OnlyIfPresent || other.OnlyIfPresent)
        && (one.OnlyIfValue == RegisterOperation.Anything || one.OnlyIfValue == other.OnlyIfValue)
        && one.OnlyIfRevision == other.OnlyIfRevision;

    /// <summary>What an operation does where its conditions hold, and what it was answered.</summary>
    private readonly record struct Effect(
        bool IsKnown, OperationKind Kind, int Value, long By, bool? Affirmed, int ExpectedValue, long ExpectedRevision)
    {
        public static Effect Of(RegisterOperation one) =>
            new(one.IsKnown, one.Kind, one.Value, one.By, one.Affirmed, one.ExpectedValue, one.ExpectedRevision);
    }
}
