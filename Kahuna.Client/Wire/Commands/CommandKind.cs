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

    /// <summary>Removes at most <see cref="Command.Number"/> keys whose time to live has passed.</summary>
    ExpireSweep = 0x40,

    /// <summary>Forgets a bounded number of client sessions that were idle for <see cref="Command.Number"/> ms of cluster time, and outcomes that nobody can ask for any more.</summary>
    SessionSweep = 0x41,

    /// <summary>Forgets the keys that the value names, because there is no room for them.</summary>
    Evict = 0x42,

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
}
