namespace Kahuna.Tests.Traces;

/// <summary>What a line of a trace tells; the names are those of the format with a capital.</summary>
internal enum TraceEventKind
{
    /// <summary>A node was started.</summary>
    Start,

    /// <summary>What it found of a group's log.</summary>
    Recover,

    /// <summary>Entries that it read back.</summary>
    Replay,

    /// <summary>A state was put in place.</summary>
    State,
    BecomeLeader,

    /// <summary>A vote left the node.</summary>
    Vote,

    /// <summary>Entries were handed to the log.</summary>
    Append,

    /// <summary>The log begins anew after an entry.</summary>
    Restart,

    /// <summary>A batch is on stable storage.</summary>
    Persisted,
    Commit,
    Apply,

    /// <summary>The callers of an entry's writes are answered.</summary>
    Acknowledged,
}
