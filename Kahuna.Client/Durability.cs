namespace Kahuna.Client;

/// <summary>
/// How much of a failure the data survives. It is part of a key's name: the same name at the other level is another key.
/// There is no value 0 on purpose: a level that was not set is refused, never taken for a default.
/// </summary>
public enum Durability
{
    /// <summary>On stable storage of a majority of the nodes before the write is acknowledged. Survives the crash of all nodes at once.</summary>
    Persistent = 1,

    /// <summary>
    /// In memory of a majority of the nodes before the write is acknowledged. Survives the crash of any minority, the leader included; when a majority has forgotten it, everything of this level
    /// is gone, and revisions go on above those of before (docs/guarantees.md).
    /// </summary>
    Ephemeral = 2,
}
