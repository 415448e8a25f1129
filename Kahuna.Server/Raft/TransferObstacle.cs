namespace Kahuna.Server.Raft;

/// <summary>Why a leader may not transfer leadership to a member now.</summary>
internal enum TransferObstacle
{
    /// <summary>It may.</summary>
    None,

    /// <summary>The member is the leader itself.</summary>
    Leads,

    /// <summary>It is not a member that votes.</summary>
    NoVoter,

    /// <summary>It lost its log, and does not count before the leader has restored it.</summary>
    LostLog,

    /// <summary>It lacks entries that the leader no longer has, and needs a snapshot first.</summary>
    AwaitsSnapshot,

    /// <summary>Its disk stands still.</summary>
    IsStalled,

    /// <summary>It was paused a moment ago, and may be paused again.</summary>
    HasPaused,
}
