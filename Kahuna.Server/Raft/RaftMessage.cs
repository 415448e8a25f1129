using Kahuna.Server.Primitives;

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

    /// <summary>
    /// A rejoining voter asks another for its term. The message's own term is meaningless and may be 0.
    /// </summary>
    TermQuery = 10,

    /// <summary>Reply to a TermQuery; its term may be 0. It changes nothing but what the asking node knows.</summary>
    TermReply = 11,

    /// <summary>
    /// A command for the leader of the meta group. Not part of Raft: the core never sees it, and it may be lost.
    /// </summary>
    Forward = 12,

    /// <summary>
    /// The digest of a member's state at a check entry, for the leader. Not part of Raft: the core never sees it, and
    /// it may be lost.
    /// </summary>
    Digest = 13,
}

/// <summary>
/// One message of a group. A flat struct: the kind decides which fields are used, the others are zero. It contains no
/// entries. An outgoing append names a range of the sender's log (<see cref="Index"/> + 1 and
/// <see cref="EntryCount"/>); an incoming one comes with the encoded entries beside it.
/// </summary>
internal struct RaftMessage
{
    public RaftMessageKind Kind;
    public NodeId From;
    public NodeId To;
    public Term Term;

    /// <summary>
    /// Append: index before the first entry. AppendReply: match index, or the rejected index. Votes: the candidate's
    /// last index. Heartbeat: the last index sent to the follower (in order), or the last that it acknowledged.
    /// HeartbeatReply: the index up to which the follower's log, durable or not, matches the leader's. TermReply: the
    /// last index if the sender leads its term, else 0.
    /// </summary>
    public LogIndex Index;

    /// <summary>Term of the entry at <see cref="Index"/>, or of the hint in a rejecting AppendReply.</summary>
    public Term LogTerm;

    /// <summary>
    /// Heartbeat: how long ago a majority last answered the sender, in ms, at most <see cref="int.MaxValue"/>; 0 also
    /// from versions that do not say it. The same bytes as <see cref="LogTerm"/>.
    /// </summary>
    public long AgeMs
    {
        readonly get => (long)Math.Min(LogTerm.Value, int.MaxValue);
        set => LogTerm = new Term((ulong)Math.Clamp(value, 0, int.MaxValue));
    }

    /// <summary>
    /// Append: the leader's commit index. Heartbeat: the same, but never above what the follower has acknowledged.
    /// </summary>
    public LogIndex Commit;

    /// <summary>
    /// Newest read round that a heartbeat asks about and its reply confirms; 0 for none. TermQuery: a number that
    /// identifies this start of the sender; TermReply repeats it, so that replies to an earlier start are told apart.
    /// TimeoutNow: ticks for which the next leader keeps leadership before placement moves it.
    /// </summary>
    public ulong Round;

    /// <summary>
    /// Rejecting AppendReply: the last index at which the logs could match, to be probed next. HeartbeatReply: the
    /// heartbeat's <see cref="Index"/>. Heartbeat: the leader's commit index, which tells the receiver how far it lags.
    /// </summary>
    public LogIndex Hint;

    /// <summary>Number of entries of an append.</summary>
    public int EntryCount;

    /// <summary>
    /// Heartbeat: the leader uses read leases and asks the receiver to elect no other leader for this time, in ms; 0:
    /// it asks for nothing. HeartbeatReply: the time that the sender has promised. The same bytes as
    /// <see cref="EntryCount"/>.
    /// </summary>
    public int PromiseMs
    {
        readonly get => EntryCount;
        set => EntryCount = value;
    }

    /// <summary>The request is refused.</summary>
    public bool Reject;

    /// <summary>Vote: requested for a leadership transfer, and granted although a leader is alive.</summary>
    public bool Transfer;

    /// <summary>
    /// HeartbeatReply: the sender's log has waited for its disk for an election timeout, so it cannot vote or lead now.
    /// </summary>
    public bool Stalled;

    /// <summary>
    /// Heartbeat: it travels behind the appends sent before it, so entries up to <see cref="Index"/> that the receiver
    /// lacks are lost. Other heartbeats may overtake appends. The same bit as <see cref="Transfer"/>.
    /// </summary>
    public bool InOrder
    {
        readonly get => Transfer;
        set => Transfer = value;
    }

    /// <summary>
    /// AppendReply and HeartbeatReply: the sender may have forgotten a promise of a later term, so the reply counts
    /// neither for commits nor for reads. Refusing PreVoteReply: the sender may not vote for the same reason. The same
    /// bit as <see cref="Transfer"/>, which only vote requests carry.
    /// </summary>
    public bool Uncounted
    {
        readonly get => Transfer;
        set => Transfer = value;
    }
}
