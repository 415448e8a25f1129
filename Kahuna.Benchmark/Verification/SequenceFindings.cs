using System.Globalization;

namespace Kahuna.Benchmark.Verification;

/// <summary>What a verified run of the workload <c>sequence</c> has shown. Immutable.</summary>
/// <param name="Values">Values that were handed out.</param>
/// <param name="Duplicates">Values that came more than once.</param>
/// <param name="Gaps">Values that nobody got, apart from those that calls of unknown end may have taken.</param>
/// <param name="Disorder">Values that were asked for after a later one had been answered.</param>
/// <param name="Unknown">Calls of which it is not known whether they took a value.</param>
/// <param name="Excused">Values that nobody got and that such calls account for.</param>
internal sealed record SequenceFindings(
    long Values, long Duplicates, long Gaps, long Disorder, long Unknown, long Excused)
    : IFindings
{
    /// <summary>Every value came once, in order, and none is missing.</summary>
    public bool IsGood => Duplicates == 0 && Gaps == 0 && Disorder == 0;

    public IEnumerable<(string Name, long Count)> Counts =>
        [
            ("values", Values),
            ("duplicates", Duplicates),
            ("gaps", Gaps),
            ("outOfOrder", Disorder),
            ("unknownCalls", Unknown),
            ("excused", Excused),
        ];

    /// <summary>The line of the report.</summary>
    public override string ToString()
    {
        string excused = Unknown == 0
            ? ""
            : string.Create(
                CultureInfo.InvariantCulture,
                $"; {Unknown:N0} calls of unknown end account for {Excused:N0} values that nobody got");
        return string.Create(
            CultureInfo.InvariantCulture,
            $"{(IsGood ? "verified" : "VIOLATION")}: {Values:N0} values, {Duplicates:N0} duplicates, {Gaps:N0} gaps, "
                + $"{Disorder:N0} out of order{excused}");
    }
}
