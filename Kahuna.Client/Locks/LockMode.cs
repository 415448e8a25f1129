namespace Kahuna.Client.Locks;

/// <summary>Whether a lock is shared, and with whom.</summary>
public enum LockMode
{
    /// <summary>One holder at a time: an ordinary lock, or the writing side of a reader/writer lock.</summary>
    Exclusive = 1,

    /// <summary>Together with others who share it, and never at the same time as an exclusive holder: the reading side of a reader/writer lock. Readers wait behind a writer who waits already.</summary>
    Shared = 2,

    /// <summary>Together with as many as a semaphore has permits. Only for <see cref="Semaphores"/>.</summary>
    Permit = 3,
}
