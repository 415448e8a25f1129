namespace Kahuna.Client.Locks;

/// <summary>How a lock is to be acquired. Immutable, so one instance may serve many calls at a time.</summary>
public sealed record LockOptions
{
    internal static LockOptions Default { get; } = new();

    /// <summary>Durability level, which is part of the lock's name; null takes that of the client's options, which is <see cref="Client.Durability.Persistent"/> unless it was changed.</summary>
    public Durability? Durability { get; init; }

    /// <summary>
    /// Who asks: 1 to 256 bytes of text. Whoever asks again under the same name has the same claim: a lock that it holds is renewed and its token is the same, and giving it up by one handle gives it up for
    /// all. Null: each call is an owner of its own, under a name that nobody else has.
    /// </summary>
    public string? Owner { get; init; }

    /// <summary>At most 1,024 bytes of text that everybody can read with <see cref="Locks.GetAsync"/> while the lock is held. Null: none.</summary>
    public string? Note { get; init; }

    /// <summary>Alone, or shared with others: the writing and the reading side of a reader/writer lock. A semaphore does not look at it.</summary>
    public LockMode Mode { get; init; } = LockMode.Exclusive;

    /// <summary>The handle renews the lease by itself whenever a third of it is over. Default true.</summary>
    public bool AutoRenew { get; init; } = true;

    /// <summary>For how long after the grant the handle renews; the last renewal ends there, so that the lock is held for the longer of this and one lease. Longer than 0. Null: until the handle is disposed, or its process ends; the lease is what bounds a holder that is gone, and this one that forgot to give back.</summary>
    public TimeSpan? RenewFor { get; init; }
}
