namespace Kahuna;

/// <summary>
/// The failures that data survives. It is part of a key's name: the same name with another durability is another key. A
/// value of 0 is not defined: a durability that was not set is refused, never mapped to a default.
/// </summary>
public enum Durability : byte
{
    /// <summary>
    /// A majority of the nodes has the write on stable storage before it is acknowledged. Survives the crash of all
    /// nodes at once.
    /// </summary>
    Persistent = 1,

    /// <summary>
    /// A majority of the nodes has the write in memory before it is acknowledged. Survives the crash of any minority,
    /// the leader included. When a majority has lost it, all ephemeral data is gone, and revisions continue above the
    /// earlier ones (docs/guarantees.md).
    /// </summary>
    Ephemeral = 2,
}
