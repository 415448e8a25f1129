namespace Kahuna.Client.Connection;

/// <summary>
/// Where an operation is between its start and its end: its deadline, the route of the current attempt and the stream
/// that has it. Part of an <see cref="Operation"/>; written by the holder of the operation, or under the lock of the
/// stream that has it.
/// </summary>
internal struct OperationAttempt
{
    /// <summary>When the operation fails, on the time provider's timestamp scale.</summary>
    public long Deadline;

    /// <summary>Until when the leader may delay its answer to a long poll.</summary>
    public long HoldUntil;

    /// <summary>How often it was sent or looked for a route. Decides the pause before the next attempt.</summary>
    public int Count;

    /// <summary>While no stream has it: when it is tried again.</summary>
    public long NotBefore;

    /// <summary>The leader that a refusal named, for the next attempt only; 0 for none.</summary>
    public int HintedNodeId;

    /// <summary>The attempt goes to a node that does not lead and is asked to forward it to the leader.</summary>
    public bool IsForwarded;

    /// <summary>The partition and durability that it is for; -1 while the cluster's map is unknown.</summary>
    public int Route;

    /// <summary>The newest known term of that route when the attempt was sent.</summary>
    public ulong Term;

    /// <summary>
    /// The epoch that the attempt is for: an attempt that arrives late is not applied in another one. 0 for persistent
    /// keys.
    /// </summary>
    public ulong Epoch;

    /// <summary>
    /// The last stream that took it; null before the first. Written under a hold and the stream's lock. A cancellation
    /// reads it after it has ended the operation, and so sees the newest.
    /// </summary>
    public NodeStream? Stream;

    /// <summary>
    /// Its number within <see cref="Stream"/>; 0 while it is queued there without one, and after a refusal. Guarded by
    /// the stream's lock.
    /// </summary>
    public uint RequestNumber;

    /// <summary>Forgets the last call, so that the pool keeps no stream alive.</summary>
    public void Clear()
    {
        Count = 0;
        HintedNodeId = 0;
        Stream = null;
        RequestNumber = 0;
        Route = -1;
        Term = 0;
        Epoch = 0;
    }
}
