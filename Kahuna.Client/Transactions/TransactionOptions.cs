using Kahuna.Client.Locks;

namespace Kahuna.Client.Transactions;

/// <summary>Options of an interactive transaction. Immutable, so one instance may serve many transactions.</summary>
public sealed record TransactionOptions
{
    /// <summary>The durability of all keys, which is part of their names; null for the client's.</summary>
    public Durability? Durability { get; init; }

    /// <summary>
    /// How long after its begin a transaction may be committed, and in how much time
    /// <see cref="TransactionClient.RunAsync{TResult}"/> tries. Default 30 s. It holds nothing on the servers
    /// meanwhile.
    /// </summary>
    public TimeSpan Timeout { get; init; } = TimeSpan.FromSeconds(30);

    /// <summary>
    /// How often <see cref="TransactionClient.RunAsync{TResult}"/> runs the work at most, 1 or more. Default 20.
    /// </summary>
    public int TriesMax { get; init; } = 20;

    /// <summary>
    /// Commit only while the token's holder has the lock, which must be in the bucket of the first key; otherwise the
    /// commit fails with <see cref="KahunaErrorCode.LockLost"/>. Null for no fence.
    /// </summary>
    public Fence? Fence { get; init; }

    internal void Check()
    {
        ArgumentOutOfRangeException.ThrowIfLessThanOrEqual(Timeout, TimeSpan.Zero);
        ArgumentOutOfRangeException.ThrowIfLessThan(TriesMax, 1);
    }
}
