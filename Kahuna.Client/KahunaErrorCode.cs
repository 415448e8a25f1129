namespace Kahuna.Client;

/// <summary>Why an operation failed. Together with <see cref="KahunaException.Outcome"/> it says what a caller can do about it.</summary>
public enum KahunaErrorCode
{
    /// <summary>No further classification. Not used by this version.</summary>
    Unspecified = 0,

    /// <summary>A field is outside its limits; the message names field, limit and value. Did not happen. Repeating it fails again.</summary>
    InvalidArgument = 1,

    /// <summary>The server's version does not serve the operation or the durability level. Did not happen.</summary>
    Unimplemented = 2,

    /// <summary>No node could be reached, or no leader was known, until the deadline. Did not happen.</summary>
    Unavailable = 3,

    /// <summary>The leader refused further work until the deadline because its inbox was full. Did not happen; slow down.</summary>
    Overloaded = 4,

    /// <summary>The server's log has reached its limit or its disk is nearly full; reads still work. Did not happen.</summary>
    LogFull = 5,

    /// <summary>The request timeout passed first. <see cref="KahunaException.Outcome"/> says whether a change is possible.</summary>
    DeadlineExceeded = 6,

    /// <summary>The connection was lost after a mutation had been sent. Outcome unknown.</summary>
    ConnectionLost = 7,

    /// <summary>The mutation was proposed, and the leader that proposed it cannot tell how it ended (it lost its leadership). Outcome unknown.</summary>
    OutcomeUnknown = 8,

    /// <summary>The server found a broken invariant and stopped the partition. Outcome unknown.</summary>
    Internal = 9,

    /// <summary>The value to increment is no decimal integer. Did not happen.</summary>
    NotAnInteger = 10,

    /// <summary>The increment would leave the signed 64-bit range. Did not happen.</summary>
    Overflow = 11,

    /// <summary>The key's history no longer holds the revision that was asked for. Nothing was changed.</summary>
    RevisionCompacted = 12,

    /// <summary>The client was disposed while the operation was under way. <see cref="KahunaException.Outcome"/> says whether a change is possible.</summary>
    ClientDisposed = 13,

    /// <summary>The peer does not speak this client's wire version, or sent what the wire format does not allow.</summary>
    Protocol = 14,

    /// <summary>The server's memory for ephemeral keys has reached its limit; reads and deletes still work. Did not happen.</summary>
    MemoryFull = 15,
}
