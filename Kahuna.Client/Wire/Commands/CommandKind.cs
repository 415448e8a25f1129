namespace Kahuna.Client.Wire.Commands;

/// <summary>What a command asks for. Kinds from 0x80 on only read and never reach the log; kinds from 0x40 to 0x7F are proposed by a leader and refused from clients. Values are part of the log format.</summary>
internal enum CommandKind : byte
{
    /// <summary>Refused.</summary>
    Unset = 0,
    Set = 1,
    Delete = 2,
    Extend = 3,
    Increment = 4,
    SequenceCreate = 5,
    SequenceUpdate = 6,
    SequenceDelete = 7,

    /// <summary>Takes the next <see cref="Command.Number"/> values of a sequence.</summary>
    SequenceNext = 8,

    /// <summary>Asks for a lock under an owner (<see cref="LockForm"/>), for a lease of <see cref="Command.TtlMs"/>; with <see cref="Command.Number"/> it waits in the queue for so many ms.</summary>
    LockAcquire = 9,

    /// <summary>Renews the lease of the lock that the owner in the value holds under the token <see cref="Command.ComparedRevision"/>.</summary>
    LockExtend = 10,

    /// <summary>Gives a lock, or a place in its queue, back; owner and token as for <see cref="LockExtend"/>. With <see cref="CommandFlags.IfAbsent"/> only a place in the queue.</summary>
    LockRelease = 11,

    /// <summary>Removes at most <see cref="Command.Number"/> keys whose time to live has passed.</summary>
    ExpireSweep = 0x40,

    /// <summary>Forgets a bounded number of client sessions that were idle for <see cref="Command.Number"/> ms of cluster time, and outcomes that nobody can ask for any more.</summary>
    SessionSweep = 0x41,

    /// <summary>Forgets the keys that the value names, because there is no room for them.</summary>
    Evict = 0x42,

    /// <summary>Ends at most <see cref="Command.Number"/> leases that have passed, and decides about those who wait: the value names them (<c>Locks/WaiterDecision</c>).</summary>
    LockSweep = 0x43,

    /// <summary>Meta group: records partitions and voters, once.</summary>
    Configure = 0x48,

    /// <summary>Meta group: a node has started.</summary>
    RegisterNode = 0x49,

    /// <summary>Meta group: a node takes no more part in an epoch of an ephemeral group.</summary>
    Pledge = 0x4A,

    /// <summary>Meta group: gives a pledge back.</summary>
    ReleasePledge = 0x4B,

    /// <summary>Meta group: makes room for longer leases in an epoch.</summary>
    RaiseCeiling = 0x4C,
    Get = 0x80,
    Exists = 0x81,
    SequenceGet = 0x82,

    /// <summary>A page of the sequences of the partition <see cref="Command.Number"/> whose names begin with the key, from the place <see cref="Command.AtRevision"/> on.</summary>
    SequenceList = 0x83,

    /// <summary>Who holds a lock.</summary>
    LockGet = 0x84,

    /// <summary>A page of the locks of a partition, as <see cref="SequenceList"/>.</summary>
    LockList = 0x85,

    /// <summary>How the claim of the owner in the value under the token <see cref="Command.ComparedRevision"/> stands; while it waits, the answer may be held back for <see cref="Command.Number"/> ms.</summary>
    LockAwait = 0x86,

    /// <summary>As <see cref="LockGet"/>; the answer may be held back for <see cref="Command.Number"/> ms while the first holder's token is <see cref="Command.ComparedRevision"/> (0: nobody's).</summary>
    LockObserve = 0x87,
}
