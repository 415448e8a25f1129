using System.Text;
using Kahuna.Client.Results;
using Kahuna.Client.Wire.Outcomes;

namespace Kahuna.Client.Locks;

/// <summary>A lock that somebody holds, as it was when the cluster answered. Immutable.</summary>
/// <param name="Resource">Its name.</param>
/// <param name="Permits">How many may hold it together if it is a semaphore; null: it is none.</param>
/// <param name="HolderCount">How many hold it.</param>
/// <param name="WaiterCount">How many wait in its queue.</param>
/// <param name="Holders">Who holds it, the lowest token first; at most the first 256.</param>
public sealed record LockDescription(string Resource, int? Permits, int HolderCount, int WaiterCount, IReadOnlyList<LockHolder> Holders)
{
    internal static LockDescription Read(string resource, ReadOnlySpan<byte> told, out ReadOnlySpan<byte> rest)
    {
        if (!LockPicture.TryRead(told, out LockPicture picture))
        {
            throw new KahunaException(KahunaErrorCode.Protocol, OperationOutcome.DidNotHappen, "The server described a lock in a way that this client does not know.");
        }

        List<LockHolder> holders = [];
        while (picture.TryNext())
        {
            TimeSpan remaining = TimeSpan.FromMilliseconds(Math.Max(0, picture.LeftMs));
            holders.Add(new LockHolder(Encoding.UTF8.GetString(picture.Owner), picture.Token, (LockMode)(byte)picture.Mode, remaining, new KahunaValue(picture.Note.ToArray())));
        }

        rest = picture.Rest;
        return new LockDescription(resource, picture.Permits == 0 ? null : picture.Permits, picture.Holders, picture.Waiters, holders);
    }
}

/// <summary>One who holds a lock. Immutable.</summary>
/// <param name="Owner">Its name; empty where an ephemeral partition has lost its data and holds the lock for nobody, until whoever had it before cannot have it any more.</param>
/// <param name="Token">The fencing token of its grant.</param>
/// <param name="Mode">How it holds the lock.</param>
/// <param name="Remaining">What was left of its lease by the cluster's clock; zero when the lease has passed and its end is just being recorded.</param>
/// <param name="Note">What it has left with the lock; empty when it left nothing.</param>
public sealed record LockHolder(string Owner, long Token, LockMode Mode, TimeSpan Remaining, KahunaValue Note);
