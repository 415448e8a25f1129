namespace Kahuna.Client.Locks;

/// <summary>How a lock is to be acquired. Immutable, so one instance may serve many calls at a time.</summary>
public sealed record LockOptions
{
    internal static LockOptions Default { get; } = new();

    /// <summary>Durability level, which is part of the lock's name; null takes that of the client's options, which is <see cref="Client.Durability.Persistent"/> unless it was changed.</summary>
    public Durability? Durability { get; init; }

    /// <summary>
    /// Names the owner, 1 to 256 bytes of text, which makes the lock re-entrant: whoever asks again under the same name,
    /// from whatever process, has the same claim. A lock that it holds is renewed under the same token, and giving it back by one handle gives it
    /// back for all: the other handles of this client are lost at once, those of other processes learn it at their next renewal.
    /// A name takes part in one mode at a time. Null: each call is an owner of its own, under a name that nobody else has.
    /// </summary>
    public string? ReentrantOwner { get; init; }

    /// <summary>At most 1,024 bytes of text that everybody can read with <see cref="Locks.GetAsync"/> while the lock is held. Null: none.</summary>
    public string? Note { get; init; }

    /// <summary>Alone, or shared with others: the writing and the reading side of a reader/writer lock. A semaphore does not look at it.</summary>
    public LockMode Mode { get; init; } = LockMode.Exclusive;

    /// <summary>The handle renews the lease by itself whenever a third of it is over. Default true.</summary>
    public bool AutoRenew { get; init; } = true;

    /// <summary>For how long after the grant the handle renews; the last renewal ends there, so that the lock is held for the longer of this and one lease. Longer than 0. Null: until the handle is disposed, or its process ends; the lease is what bounds a holder that is gone, and this one that forgot to give back.</summary>
    public TimeSpan? RenewFor { get; init; }
}
