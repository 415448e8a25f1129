namespace Kahuna.Tests.Linearizability;

/// <summary>How an operation of a history ended for its caller.</summary>
internal enum HistoryOutcome
{
    /// <summary>It was answered; the result says what.</summary>
    Ok,

    /// <summary>It surely did not happen, and never will.</summary>
    Fail,

    /// <summary>No answer: it took effect at some time from its call on, will still do so, or never will.</summary>
    Unknown,
}
