namespace Kahuna.Client.Wire.Commands;

/// <summary>Options of a command, and which optional fields follow its fixed header. Values are part of the log format.</summary>
[Flags]
internal enum CommandFlags : ushort
{
    None = 0,

    /// <summary>NX: the key must not exist. Of <see cref="CommandKind.LockRelease"/>: the claim must not have the lock yet, only its place in the queue is given back.</summary>
    IfAbsent = 1 << 0,

    /// <summary>XX: the key must exist.</summary>
    IfPresent = 1 << 1,

    /// <summary>The key must hold the compared value, which is carried.</summary>
    IfValue = 1 << 2,

    /// <summary>The key must be at the compared revision, which is carried.</summary>
    IfRevision = 1 << 3,

    /// <summary>A time to live in milliseconds is carried.</summary>
    Ttl = 1 << 4,

    /// <summary>Read at a revision, which is carried.</summary>
    AtRevision = 1 << 5,

    /// <summary>A signed number is carried (the amount of an increment, the bound of a sweep).</summary>
    Number = 1 << 6,

    /// <summary>Session id, sequence number and what the client confirms are carried.</summary>
    Session = 1 << 7,

    /// <summary>The replaced revision is not kept in history.</summary>
    WithoutHistory = 1 << 8,

    /// <summary>The outcome carries the previous value.</summary>
    ReturnPrevious = 1 << 9,

    /// <summary>The value is null, not empty.</summary>
    NullValue = 1 << 10,

    /// <summary>The compared value is null, not empty.</summary>
    NullCompared = 1 << 11,

    /// <summary>With <see cref="Session"/>: the partition may not know the session yet, and takes it on.</summary>
    Opening = 1 << 12,

    /// <summary>With <see cref="Session"/>: the session is an idempotency key, and counts for what the name stands for now and not for what it stands for after it was deleted and created again.</summary>
    Keyed = 1 << 13,

    /// <summary>A fencing token and the name of its lock are carried: the write counts only while that token's holder has the lock.</summary>
    Fenced = 1 << 14,

    /// <summary>All bits that this version knows.</summary>
    All = (1 << 15) - 1,
}
