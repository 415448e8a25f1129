namespace Kahuna;

/// <summary>
/// Whether a lock is shared, and with whom. Values are part of the wire and log formats; 0 is not defined and is
/// refused.
/// </summary>
public enum LockMode : byte
{
    /// <summary>One holder at a time: an ordinary lock, or the writing side of a reader/writer lock.</summary>
    Exclusive = 1,

    /// <summary>
    /// Held together with other shared holders, never with an exclusive one: the reading side of a reader/writer lock.
    /// A new reader waits behind a writer that waits already.
    /// </summary>
    Shared = 2,

    /// <summary>Held together with as many owners as the semaphore has permits. Only for semaphores.</summary>
    Permit = 3,
}
