using System.Text;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Client.Locks;

/// <summary>A held lock at the moment at which the cluster answered. Immutable.</summary>
/// <param name="Resource">Name of the lock.</param>
/// <param name="Permits">The number of permits of a semaphore; null for a lock.</param>
/// <param name="HolderCount">How many hold it.</param>
/// <param name="WaiterCount">How many wait in its queue.</param>
/// <param name="Holders">The holders, lowest token first; at most 256.</param>
public sealed record LockDescription(
    string Resource, int? Permits, int HolderCount, int WaiterCount, IReadOnlyList<LockHolder> Holders)
{
    internal static LockDescription Read(string resource, ReadOnlySpan<byte> told, out ReadOnlySpan<byte> rest)
    {
        if (!LockSnapshot.TryRead(told, out LockSnapshot snapshot))
        {
            throw OperationErrors.UnknownDescription("a lock");
        }

        List<LockHolder> holders = [];
        while (snapshot.TryNext())
        {
            TimeSpan remaining = TimeSpan.FromMilliseconds(Math.Max(0, snapshot.LeftMs));
            holders.Add(new LockHolder(
                Encoding.UTF8.GetString(snapshot.Owner),
                new FencingToken(snapshot.Token),
                snapshot.Mode,
                remaining,
                new KahunaValue(snapshot.Note.ToArray())));
        }

        rest = snapshot.Rest;
        return new LockDescription(
            resource, snapshot.Permits == 0 ? null : snapshot.Permits, snapshot.Holders, snapshot.Waiters, holders);
    }
}

/// <summary>One holder of a lock. Immutable.</summary>
/// <param name="Owner">
/// The owner's name. Empty when an ephemeral partition lost its data and keeps the lock until the former holder's lease
/// has certainly ended.
/// </param>
/// <param name="Token">The fencing token of the grant.</param>
/// <param name="Mode">How the lock is held.</param>
/// <param name="Remaining">
/// The rest of its lease by the cluster's clock; zero when the lease has ended and that is being recorded.
/// </param>
/// <param name="Note">The owner's note; empty without one.</param>
public sealed record LockHolder(string Owner, FencingToken Token, LockMode Mode, TimeSpan Remaining, KahunaValue Note);
