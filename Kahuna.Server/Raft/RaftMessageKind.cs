namespace Kahuna.Server.Raft;

/// <summary>Kinds of messages between the members of a group. Values are part of the peer format.</summary>
internal enum RaftMessageKind : byte
{
    None = 0,
    PreVote = 1,
    PreVoteReply = 2,
    Vote = 3,
    VoteReply = 4,
    Append = 5,
    AppendReply = 6,
    Heartbeat = 7,
    HeartbeatReply = 8,

    /// <summary>The leader asks the target to campaign at once (leadership transfer).</summary>
    TimeoutNow = 9,
}
