namespace Kahuna.Server.State.Rows;

/// <summary>What happened to a key. Values are not stored.</summary>
internal enum ChangeKind : byte
{
    /// <summary>A command wrote a value: the key has a new revision.</summary>
    Written,

    /// <summary>A command deleted the key: its last revision is the deletion.</summary>
    Deleted,

    /// <summary>
    /// The key's time to live had passed: its last revision is the deletion. No command asked for it.
    /// </summary>
    Expired,

    /// <summary>
    /// There was no room: nothing of the key is left, no revision either. No command of a client asked for it.
    /// </summary>
    Evicted,

    /// <summary>A deleted key's last trace is gone: nothing of it is left. No command asked for it.</summary>
    Forgotten,

    /// <summary>
    /// The key's history was cut: its replaced revisions up to the named one can no longer be read. No command asked
    /// for it.
    /// </summary>
    HistoryCut,
}
