namespace Kahuna.Server.Primitives;

/// <summary>What a log entry carries. Values are part of the log format.</summary>
internal enum EntryKind : byte
{
    /// <summary>Nothing: the entry with which a new leader begins its term.</summary>
    Empty = 0,

    /// <summary>A batch of commands with the cluster time at which they apply.</summary>
    Commands = 1,

    /// <summary>A change of the group's members (kept free; none is written yet).</summary>
    Membership = 2,

    /// <summary>Stamps the cluster's time and compares the members' states.</summary>
    Check = 3,
}
