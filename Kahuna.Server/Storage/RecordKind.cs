namespace Kahuna.Server.Storage;

/// <summary>What a log record carries. Values are part of the log format; 0 is none, so that zeros are never a record.</summary>
internal enum RecordKind : uint
{
    /// <summary>Begins a batch; a batch without records is a mark. It says: everything before this batch is on stable storage.</summary>
    Batch = 1,

    /// <summary>Consecutive entries of one group.</summary>
    Entries = 2,

    /// <summary>One group's hard state.</summary>
    HardState = 3,

    /// <summary>Hard state and last entry of all groups, at the start of a segment, so that older segments can go.</summary>
    Checkpoint = 4,

    /// <summary>One group's log begins anew behind an entry; what it had is dropped.</summary>
    Restart = 5,
}
