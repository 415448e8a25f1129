namespace Kahuna.Benchmark.Verification;

/// <summary>What a verified run has shown; its text is the line of the report. Immutable.</summary>
internal interface IFindings
{
    /// <summary>No promise was broken.</summary>
    bool IsGood { get; }

    /// <summary>The counts by their names in the JSON report.</summary>
    IEnumerable<(string Name, long Count)> Counts { get; }
}
