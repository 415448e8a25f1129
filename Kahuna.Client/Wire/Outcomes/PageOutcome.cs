namespace Kahuna.Wire.Outcomes;

/// <summary>One page of a list, as the outcome of <see cref="Commands.PageRequest"/>. Stateless, any thread.</summary>
internal static class PageOutcome
{
    /// <summary>A page.</summary>
    /// <param name="rows">What is on it.</param>
    /// <param name="cursor">Where the next one begins; 0 at the end.</param>
    public static Outcome Of(ReadOnlySpan<byte> rows, long cursor) =>
        new(OutcomeStatus.Found, 0, cursor) { HasValue = true, Value = rows };

    /// <summary>Where the next page begins; 0 at the end.</summary>
    public static long CursorOf(scoped in Outcome outcome) => outcome.Number;
}
