namespace Kahuna.Client.Transactions;

/// <summary>What became of a transaction; it never changes again.</summary>
public enum TransactionOutcome
{
    /// <summary>Nothing of it was written, and nothing will be.</summary>
    NotCommitted = 0,

    /// <summary>All of it was written.</summary>
    Committed = 1,
}
