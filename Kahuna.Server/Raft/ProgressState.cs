namespace Kahuna.Server.Raft;

/// <summary>How a leader feeds a follower.</summary>
internal enum ProgressState : byte
{
    /// <summary>One append at a time, until the follower confirms where the logs agree.</summary>
    Probing,

    /// <summary>Appends leave before earlier ones are acknowledged.</summary>
    Replicating,

    /// <summary>What the follower needs next is no longer in the log: nothing is appended until it has a snapshot, or got there another way.</summary>
    Snapshot,
}
