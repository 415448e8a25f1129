using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;

namespace Kahuna.Server.State.Locks;

/// <summary>The queue of one lock, for people. Immutable.</summary>
/// <param name="Holders">How many hold the lock.</param>
/// <param name="Waiters">How many wait for it.</param>
/// <param name="First">Those at the front of the queue, in its order.</param>
internal sealed record LockQueue(int Holders, int Waiters, IReadOnlyList<LockWaiter> First)
{
    /// <summary>The queue of a lock that nobody has or waits for.</summary>
    public static LockQueue Empty { get; } = new(0, 0, []);

    /// <summary>Reads the queue of a lock; for the owner of the store.</summary>
    /// <param name="rows">The locks.</param>
    /// <param name="store">The tables.</param>
    /// <param name="name">The lock.</param>
    /// <param name="countMax">The most waiters that are read: bounded work on the loop.</param>
    /// <param name="now">The present cluster time.</param>
    public static LockQueue Read(
        LockRows rows, KeyStore store, ReadOnlySpan<byte> name, int countMax, ClusterTime now)
    {
        Row row = rows.Find(name);
        if (row.IsNone)
        {
            return Empty;
        }

        LockRow at = rows.LockAt(row);
        List<LockWaiter> first = [];
        for (Row claim = at.FirstWaiter; !claim.IsNone && first.Count < countMax; claim = rows.ClaimAt(claim).After)
        {
            ClaimRow waiting = rows.ClaimAt(claim);
            first.Add(new LockWaiter(
                waiting.Token,
                Encoding.UTF8.GetString(store.Keys.Key(in store.Keys[claim])[ClaimRow.OwnerAt..]),
                waiting.Mode,
                Math.Max(0, waiting.WaitEnd - now),
                waiting.LeaseMs));
        }

        return new LockQueue(at.Holders, at.Waiters, first);
    }
}

/// <summary>A claim that waits for a lock. Immutable.</summary>
/// <param name="Token">The fencing token that it will have.</param>
/// <param name="Owner">Its owner.</param>
/// <param name="Mode">How it wants to hold the lock.</param>
/// <param name="LeftMs">Milliseconds until it gives up.</param>
/// <param name="LeaseMs">The lease that it asks for.</param>
internal sealed record LockWaiter(FencingToken Token, string Owner, LockMode Mode, long LeftMs, int LeaseMs);
