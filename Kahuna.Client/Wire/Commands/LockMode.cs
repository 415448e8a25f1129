namespace Kahuna.Client.Wire.Commands;

/// <summary>How a lock is shared. Values are part of the log format.</summary>
internal enum LockMode : byte
{
    Unset = 0,

    /// <summary>Alone.</summary>
    Exclusive = 1,

    /// <summary>Together with others who share it: the reading side of a reader/writer lock.</summary>
    Shared = 2,

    /// <summary>Together with as many as there are permits: a semaphore.</summary>
    Permit = 3,
}
