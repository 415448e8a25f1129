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

    /// <summary>The server's log has reached its limit or its disk is nearly full; reads still work. Did not happen, unless an earlier attempt of the call was sent and not answered: <see cref="KahunaException.Outcome"/> says it.</summary>
    LogFull = 5,

    /// <summary>The request timeout passed first. <see cref="KahunaException.Outcome"/> says whether a change is possible.</summary>
    DeadlineExceeded = 6,

    /// <summary>The connection was lost after a mutation had been sent, and none of the attempts that followed was answered before the request timeout. Outcome unknown.</summary>
    ConnectionLost = 7,

    /// <summary>The cluster has forgotten the client's session, so that it cannot tell whether an earlier attempt was applied. Outcome unknown. Only after an ephemeral partition has lost its data, or a client has stood still for long.</summary>
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

    /// <summary>The server's memory for data of the call's level, persistent or ephemeral, has reached its limit, or the partition holds as much as one can: sets, increments, values of sequences and acquires of that level are refused; everything else still works. Did not happen, unless an earlier attempt of the call was sent and not answered: <see cref="KahunaException.Outcome"/> says it.</summary>
    MemoryFull = 15,

    /// <summary>The partition remembers as many client sessions as it may, and all of them may still be needed. Did not happen, unless <see cref="KahunaException.Outcome"/> says that an earlier attempt may have; try again in a few minutes, and share one client within a process.</summary>
    SessionsFull = 16,

    /// <summary>There is no sequence of this name. Did not happen.</summary>
    SequenceNotFound = 17,

    /// <summary>The sequence has not so many values left before its bound, and does not begin again there. Did not happen.</summary>
    SequenceExhausted = 18,

    /// <summary>The lock was not free within the time that the caller waits for it. Did not happen.</summary>
    LockBusy = 19,

    /// <summary>The fencing token that a write carries is not current, or a lease ended before its grant could be used. Did not happen; acquire the lock anew.</summary>
    LockLost = 20,

    /// <summary>The name is in use as another kind of lock: as a semaphore, with another number of permits, or by the same owner in another mode; or the caller itself holds the lock shared and asks for it exclusively. Did not happen.</summary>
    LockModeDiffers = 21,

    /// <summary>No server's certificate is trusted; the message names the certificate and the option that decides, <see cref="KahunaClientOptions.TrustedCaFile"/>. Fails at once. Did not happen, unless <see cref="KahunaException.Outcome"/> says that an earlier attempt may have.</summary>
    Untrusted = 22,

    /// <summary>The lock has as many holders and waiters as it may: 131,072. Did not happen, unless <see cref="KahunaException.Outcome"/> says that an earlier attempt may have; try again when some have gone.</summary>
    LockFull = 23,
}
