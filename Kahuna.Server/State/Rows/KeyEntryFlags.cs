namespace Kahuna.Server.State.Rows;

/// <summary>What a revision of a key is besides its bytes.</summary>
[Flags]
internal enum KeyEntryFlags : byte
{
    None = 0,

    /// <summary>The revision is a deletion; it has no value.</summary>
    Deleted = 1,

    /// <summary>The value is null, not empty.</summary>
    Null = 2,

    /// <summary>The row stands for nothing and is used again; it has neither name nor value.</summary>
    Free = 4,

    /// <summary>The row is the system's own and no key: its name begins with a byte that no key does.</summary>
    System = 8,

    /// <summary>
    /// With <see cref="System"/>: the value is a client session (<see cref="Sessions.SessionWindow"/>), which is
    /// changed in place.
    /// </summary>
    Session = 16,

    /// <summary>With <see cref="System"/>: a claim for a lock (<see cref="Locks.ClaimRow"/>).</summary>
    Claim = 32,

    /// <summary>With <see cref="Claim"/>: it holds the lock; others wait for it.</summary>
    Held = 64,
}
