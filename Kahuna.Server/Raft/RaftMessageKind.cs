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

    /// <summary>A rejoining voter asks another for its term. Its own term means nothing and may be 0.</summary>
    TermQuery = 10,

    /// <summary>The answer, which may name term 0. It changes nothing anywhere but what the asking node knows.</summary>
    TermReply = 11,

    /// <summary>A command for the leader of the meta group beside it. Not of Raft: the core never sees it, and it may be lost.</summary>
    Forward = 12,

    /// <summary>The digest of a member's state at a check entry, for the leader. Not of Raft: the core never sees it, and it may be lost.</summary>
    Digest = 13,
}
