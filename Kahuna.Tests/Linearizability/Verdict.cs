namespace Kahuna.Tests.Linearizability;

/// <summary>What is known of a history after the search.</summary>
internal enum Verdict
{
    /// <summary>There is an order that explains every answer.</summary>
    Linearizable,

    /// <summary>There is none.</summary>
    NotLinearizable,

    /// <summary>The search reached its limit.</summary>
    Undecided,
}
