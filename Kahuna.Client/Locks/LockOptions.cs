namespace Kahuna.Client.Locks;

/// <summary>Options of an acquire. Immutable, so one instance may serve many concurrent calls.</summary>
public sealed record LockOptions
{
    internal static LockOptions Default { get; } = new();

    /// <summary>
    /// Durability of the lock, which is part of its name. Null takes the client's, by default
    /// <see cref="Kahuna.Durability.Persistent"/>.
    /// </summary>
    public Durability? Durability { get; init; }

    /// <summary>
    /// Names the owner with 1 to 256 bytes of UTF-8, which makes the lock re-entrant. Every call under the same name,
    /// from any process, shares one claim. Acquiring a held lock renews it under the same token. Releasing one handle
    /// releases the lock for all: other handles of this client are lost at once, those of other processes at their next
    /// renewal. An owner uses one mode at a time. Null: each call is an owner of its own, with a unique name.
    /// </summary>
    public string? ReentrantOwner { get; init; }

    /// <summary>
    /// A note of at most 1,024 bytes of UTF-8 that every client can read with <see cref="LockClient.GetAsync"/> while
    /// the lock is held. Null for none.
    /// </summary>
    public string? Note { get; init; }

    /// <summary>
    /// Exclusive, or shared with others: the writing and the reading side of a reader/writer lock. Ignored for
    /// semaphores.
    /// </summary>
    public LockMode Mode { get; init; } = LockMode.Exclusive;

    /// <summary>The handle renews the lease whenever a third of it has passed. Default true.</summary>
    public bool AutoRenew { get; init; } = true;

    /// <summary>
    /// How long after the grant the handle renews; longer than 0. The last renewal ends there, so the lock is held for
    /// this span or one lease, whichever is longer. Null: until the handle is disposed or its process ends. The lease
    /// bounds a holder that crashed; this limit bounds one that forgot to release.
    /// </summary>
    public TimeSpan? RenewFor { get; init; }
}
