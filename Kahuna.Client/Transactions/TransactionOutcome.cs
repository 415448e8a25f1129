namespace Kahuna.Client.Transactions;

/// <summary>What became of a transaction; it never changes again.</summary>
public enum TransactionOutcome
{
    /// <summary>Nothing of it was written, and nothing will be.</summary>
    NotCommitted = 0,

    /// <summary>All of it was written; of a conditional transaction, the operations of Then.</summary>
    Committed = 1,

    /// <summary>
    /// A condition did not hold: the operations of Else were carried out, if there are any, and nothing of Then.
    /// </summary>
    CommittedElse = 2,
}
