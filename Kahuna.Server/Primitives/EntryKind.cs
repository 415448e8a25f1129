namespace Kahuna.Server.Primitives;

/// <summary>Kind of a log entry. Values are part of the log format.</summary>
internal enum EntryKind : byte
{
    /// <summary>Empty: the entry with which a new leader begins its term.</summary>
    Empty = 0,

    /// <summary>A batch of commands with the cluster time at which they apply.</summary>
    Commands = 1,

    /// <summary>A change of the group's members. Reserved; not written yet.</summary>
    Membership = 2,

    /// <summary>Stamps the cluster time and compares the members' states.</summary>
    Check = 3,
}
