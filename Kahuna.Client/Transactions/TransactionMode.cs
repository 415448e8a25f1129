namespace Kahuna.Client.Transactions;

/// <summary>What an interactive transaction does so that others do not get into its way.</summary>
public enum TransactionMode
{
    /// <summary>
    /// Nothing: its commit fails when something that it has read was changed meanwhile. The best choice where
    /// transactions seldom meet.
    /// </summary>
    Optimistic = 0,

    /// <summary>
    /// It holds the keys that it reads or writes, and others wait for it. The best choice where many transactions want
    /// the same keys. Its commit fails only if it has lost a hold, after a change of the leader for instance.
    /// </summary>
    Pessimistic = 1,
}
