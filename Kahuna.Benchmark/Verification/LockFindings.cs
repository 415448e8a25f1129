using System.Globalization;

namespace Kahuna.Benchmark.Verification;

/// <summary>What a verified run of the workload <c>lock</c> has shown. Immutable.</summary>
/// <param name="Grants">Locks that were granted.</param>
/// <param name="Overlaps">Grants that came while another worker still had the lock.</param>
/// <param name="Duplicates">Tokens that came more than once.</param>
/// <param name="Disorder">Tokens that were asked for after a later one of the lock had been granted.</param>
/// <param name="EndedEarly">Locks that were no longer held when they were released, while their lease went
/// on.</param>
/// <param name="Unknown">Calls of which it is not known whether they were granted a lock.</param>
internal sealed record LockFindings(
    long Grants, long Overlaps, long Duplicates, long Disorder, long EndedEarly, long Unknown)
    : IFindings
{
    /// <summary>No lock had two holders, no lease ended early, and all tokens grew.</summary>
    public bool IsGood => Overlaps == 0 && Duplicates == 0 && Disorder == 0 && EndedEarly == 0;

    public IEnumerable<(string Name, long Count)> Counts =>
        [
            ("grants", Grants),
            ("overlaps", Overlaps),
            ("duplicates", Duplicates),
            ("outOfOrder", Disorder),
            ("endedEarly", EndedEarly),
            ("unknownCalls", Unknown),
        ];

    /// <summary>The line of the report.</summary>
    public override string ToString()
    {
        string unknown = Unknown == 0
            ? ""
            : string.Create(CultureInfo.InvariantCulture, $"; {Unknown:N0} calls of unknown end");
        return string.Create(
            CultureInfo.InvariantCulture,
            $"{(IsGood ? "verified" : "VIOLATION")}: {Grants:N0} grants, {Overlaps:N0} with two holders, "
                + $"{Duplicates:N0} tokens twice, {Disorder:N0} tokens out of order, {EndedEarly:N0} "
                + $"leases ended early{unknown}");
    }
}
