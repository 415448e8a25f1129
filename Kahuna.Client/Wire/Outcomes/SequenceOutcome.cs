namespace Kahuna.Wire.Outcomes;

/// <summary>
/// The outcomes of commands about sequences under their own names. Stateless, any thread.
/// </summary>
internal static class SequenceOutcome
{
    /// <summary>Of <see cref="OutcomeStatus.Applied"/>: the first of the values that were taken.</summary>
    public static long FirstOf(scoped in Outcome outcome) => outcome.Number;

    /// <summary>Of <see cref="OutcomeStatus.Applied"/>: the last of the values that were taken.</summary>
    public static long LastOf(scoped in Outcome outcome) => outcome.Revision;

    /// <summary>Of <see cref="OutcomeStatus.Exhausted"/>: how many values are left.</summary>
    public static long LeftOf(scoped in Outcome outcome) => outcome.Number;

    /// <summary>Of <see cref="OutcomeStatus.OutOfBounds"/>: the value at which the sequence is.</summary>
    public static long PresentOf(scoped in Outcome outcome) => outcome.Number;

    /// <summary>Values were taken.</summary>
    public static Outcome Taken(long first, long last) => new(OutcomeStatus.Applied, last, first);

    /// <summary>Fewer values are left than were asked for.</summary>
    public static Outcome Exhausted(long left) => new(OutcomeStatus.Exhausted, 0, left);

    /// <summary>The change would leave the sequence's value out.</summary>
    public static Outcome OutOfBounds(long present) => new(OutcomeStatus.OutOfBounds, 0, present);
}
