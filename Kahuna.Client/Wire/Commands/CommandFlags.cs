namespace Kahuna.Wire.Commands;

/// <summary>
/// Options of a command, which also decide the optional fields after its fixed header. Values are part of the log
/// format.
/// </summary>
[Flags]
internal enum CommandFlags : ushort
{
    None = 0,

    /// <summary>
    /// NX: the key must not exist. Of a <see cref="CommandKind.LockRelease"/>: only a place in the queue is released; a
    /// granted lock stays.
    /// </summary>
    IfAbsent = 1 << 0,

    /// <summary>XX: the key must exist.</summary>
    IfPresent = 1 << 1,

    /// <summary>The key must hold the compared value. Carries the value.</summary>
    IfValue = 1 << 2,

    /// <summary>
    /// The key must be at the compared revision. Carries the revision, or the token of a command on locks.
    /// </summary>
    IfRevision = 1 << 3,

    /// <summary>Carries a time to live or a lease, in milliseconds.</summary>
    Ttl = 1 << 4,

    /// <summary>Reads at a revision. Carries the revision, or the cursor of a list.</summary>
    AtRevision = 1 << 5,

    /// <summary>
    /// Carries a signed number: an amount, a count, a wait, a hold, a partition or the bound of a sweep.
    /// </summary>
    Number = 1 << 6,

    /// <summary>Carries the session id, the sequence number and the confirmed numbers.</summary>
    Session = 1 << 7,

    /// <summary>The replaced revision is not kept in history.</summary>
    WithoutHistory = 1 << 8,

    /// <summary>The outcome carries the previous value.</summary>
    ReturnPrevious = 1 << 9,

    /// <summary>The value is null, not empty.</summary>
    NullValue = 1 << 10,

    /// <summary>The compared value is null, not empty.</summary>
    NullCompared = 1 << 11,

    /// <summary>With <see cref="Session"/>: the partition opens the session if it does not know it.</summary>
    Opening = 1 << 12,

    /// <summary>
    /// With <see cref="Session"/>: the session is an idempotency key. It belongs to the sequence as it exists now, and
    /// not to a later one of the same name.
    /// </summary>
    Keyed = 1 << 13,

    /// <summary>
    /// Carries a fencing token and the name of its lock: the write counts only while the token's holder has the lock.
    /// </summary>
    Fenced = 1 << 14,

    /// <summary>
    /// The outcome of a read carries the point among the changes of its group up to which the read saw everything.
    /// </summary>
    Positioned = 1 << 15,

    /// <summary>All flags of this version.</summary>
    All = (1 << 16) - 1,
}
