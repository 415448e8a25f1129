namespace Kahuna.Cli.Diagnosis;

/// <summary>What a check of the doctor says. Immutable.</summary>
/// <param name="Check">The name of the check.</param>
/// <param name="Severity">How bad it is.</param>
/// <param name="Subject">The node, partition or cluster that it is about.</param>
/// <param name="Text">What was found.</param>
/// <param name="Advice">What to do; null: nothing.</param>
internal sealed record Finding(string Check, Severity Severity, string Subject, string Text, string? Advice = null);

/// <summary>How bad a finding is.</summary>
internal enum Severity
{
    /// <summary>As it should be.</summary>
    Ok = 0,

    /// <summary>Works, and needs attention soon.</summary>
    Warning = 1,

    /// <summary>Does not work, or is not safe.</summary>
    Problem = 2,
}
