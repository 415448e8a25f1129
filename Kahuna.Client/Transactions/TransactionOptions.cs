using Kahuna.Client.Locks;
using Kahuna.Wire;

namespace Kahuna.Client.Transactions;

/// <summary>Options of an interactive transaction. Immutable, so one instance may serve many transactions.</summary>
public sealed record TransactionOptions
{
    /// <summary>The durability of all keys, which is part of their names; null for the client's.</summary>
    public Durability? Durability { get; init; }

    /// <summary>Whether the transaction holds the keys that it reads and writes. Default: it does not.</summary>
    public TransactionMode Mode { get; init; }

    /// <summary>
    /// How long after its begin a transaction may be committed, and in how much time
    /// <see cref="TransactionClient.RunAsync{TResult}"/> tries. Default 30 s. A pessimistic transaction has
    /// 100 ms to 60 s, and holds its keys no longer, even if its client has gone. An optimistic one holds nothing.
    /// </summary>
    public TimeSpan Timeout { get; init; } = TimeSpan.FromSeconds(30);

    /// <summary>
    /// How often <see cref="TransactionClient.RunAsync{TResult}"/> runs the work at most, 1 or more. Default 20.
    /// </summary>
    public int TriesMax { get; init; } = 20;

    /// <summary>
    /// Commit only while the token's holder has the lock; otherwise the commit fails with
    /// <see cref="KahunaErrorCode.LockLost"/>. Which lock it is: <see cref="ConditionalTransaction.WithFence"/>. Null
    /// for no fence.
    /// </summary>
    public Fence? Fence { get; init; }

    internal void Check()
    {
        ArgumentOutOfRangeException.ThrowIfLessThanOrEqual(Timeout, TimeSpan.Zero);
        ArgumentOutOfRangeException.ThrowIfLessThan(TriesMax, 1);
        if (Mode == TransactionMode.Optimistic)
        {
            return;
        }

        ArgumentOutOfRangeException.ThrowIfNotEqual(Mode, TransactionMode.Pessimistic);
        ArgumentOutOfRangeException.ThrowIfLessThan(
            Timeout, TimeSpan.FromMilliseconds(Limits.TransactionHoldMsMin), nameof(Timeout));
        ArgumentOutOfRangeException.ThrowIfGreaterThan(
            Timeout, TimeSpan.FromMilliseconds(Limits.TransactionHoldMsMax), nameof(Timeout));
    }
}
