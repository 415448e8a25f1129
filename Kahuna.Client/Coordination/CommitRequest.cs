using Kahuna.Client.Locks;

namespace Kahuna.Client.Coordination;

/// <summary>A transaction as a caller hands it over, in encoded form. Immutable.</summary>
internal sealed record CommitRequest
{
    /// <summary>
    /// The transaction as a <see cref="Wire.Commands.TransactionBody"/>. Its items were checked one by one, and may be
    /// of both durabilities. The bytes are read until the call completes.
    /// </summary>
    public required ReadOnlyMemory<byte> Body { get; init; }

    /// <summary>
    /// The fence of the whole; null for none. Beside keys of one partition, the first of which is in its bucket, its
    /// lock is of their durability; otherwise it is a persistent one.
    /// </summary>
    public Fence? Fence { get; init; }

    /// <summary>
    /// The id of the pessimistic transaction that commits, whose holds end with it; empty for none.
    /// </summary>
    public ReadOnlyMemory<byte> Holder { get; init; }

    /// <summary>
    /// The caller needs only to know whether the conditions held and the transaction is committed: when one does not
    /// hold, nothing is held or carried out, and results of operations may be missing.
    /// </summary>
    public bool IsVerdictEnough { get; init; }

    /// <summary>Of a node that coordinates for a user: whose account it is charged to; 0 for a client.</summary>
    public ushort Account { get; init; }

    /// <summary>How long the caller waits; null, or a longer time, for the request timeout.</summary>
    public TimeSpan? Patience { get; init; }
}
