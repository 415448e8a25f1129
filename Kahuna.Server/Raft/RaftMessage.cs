using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// One message of a group. A flat struct: which fields count depends on the kind, the others are zero. Entries are not
/// in it: an outgoing append names a range of the sender's own log (<see cref="Index"/> + 1 and <see cref="EntryCount"/>),
/// an incoming one comes with the encoded entries beside it.
/// </summary>
internal struct RaftMessage
{
    public RaftMessageKind Kind;
    public NodeId From;
    public NodeId To;
    public Term Term;

    /// <summary>
    /// Append: index before the first entry. AppendReply: match index, or the rejected index. Votes: the candidate's last
    /// index. Heartbeat: the last index sent to the follower (in order), or the last that it acknowledged. HeartbeatReply: how far the follower's log, durable or not, agrees with the leader's.
    /// TermReply: the last index of a sender that leads its term; else 0.
    /// </summary>
    public LogIndex Index;

    /// <summary>Term of the entry at <see cref="Index"/>, or of the hint in a rejecting AppendReply.</summary>
    public Term LogTerm;

    /// <summary>Append: the leader's commit index. Heartbeat: the same, and never above what the follower has acknowledged.</summary>
    public LogIndex Commit;

    /// <summary>
    /// Number of the newest read round that a heartbeat asks about and its reply confirms; 0: none. TermQuery: a number of
    /// this start of the asking node, TermReply: the same, so that answers to an earlier start's questions are told apart.
    /// </summary>
    public ulong Round;

    /// <summary>Rejecting AppendReply: the last index at which the logs could agree, to be tried next. HeartbeatReply: the heartbeat's <see cref="Index"/>. Heartbeat: the leader's commit index, for the receiver to know how far it lags.</summary>
    public LogIndex Hint;

    /// <summary>Number of entries of an append.</summary>
    public int EntryCount;

    /// <summary>The request is refused.</summary>
    public bool Reject;

    /// <summary>A vote that is asked for a leadership transfer: it is granted although a leader is alive.</summary>
    public bool Transfer;

    /// <summary>HeartbeatReply: the sender's log has been waiting for its disk for an election timeout, so it cannot vote or lead now.</summary>
    public bool Stalled;

    /// <summary>
    /// Heartbeat: it follows the appends that were sent before it, so what the receiver lacks up to <see cref="Index"/> is lost. Others pass them. The
    /// same bit as <see cref="Transfer"/>.
    /// </summary>
    public bool InOrder
    {
        readonly get => Transfer;
        set => Transfer = value;
    }

    /// <summary>
    /// AppendReply and HeartbeatReply: the sender may have forgotten what it promised in a later term, so that this must be counted
    /// neither for a commit nor for a read. A refusing PreVoteReply: it may not vote for the same reason. The same bit as <see cref="Transfer"/>, which only votes that are asked for carry.
    /// </summary>
    public bool Uncounted
    {
        readonly get => Transfer;
        set => Transfer = value;
    }
}
