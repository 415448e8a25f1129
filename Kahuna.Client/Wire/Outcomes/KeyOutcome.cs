namespace Kahuna.Wire.Outcomes;

/// <summary>The outcomes of commands about keys under their own names. Stateless, any thread.</summary>
internal static class KeyOutcome
{
    /// <summary>
    /// The key's revision: the one that was written or read, or the present one where a condition failed.
    /// </summary>
    public static Revision RevisionOf(scoped in Outcome outcome) => new(outcome.Revision);

    /// <summary>Of a set or delete: the revision before; none when the key did not exist.</summary>
    public static Revision PreviousOf(scoped in Outcome outcome) => new(outcome.Number);

    /// <summary>Of a read: the time to live that is left, in ms; -1: it has none.</summary>
    public static long RemainingMsOf(scoped in Outcome outcome) => outcome.Number;

    /// <summary>Of an increment: the value after it; of an overflow: the value as it is.</summary>
    public static long SumOf(scoped in Outcome outcome) => outcome.Number;
}
