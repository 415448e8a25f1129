using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>Decides which messages this node accepts at all. Immutable; owned by one core.</summary>
internal sealed class MessageRules(Members members)
{
    /// <summary>
    /// Upper bound of terms and indexes from peers. No log reaches it, and sums below it cannot overflow.
    /// </summary>
    private const ulong ValueMax = 1UL << 62;

    /// <summary>
    /// False for a malformed message, for one that its sender may not send, and for one addressed to another node.
    /// </summary>
    public bool IsAcceptable(in RaftMessage message, Term ownTerm)
    {
        bool isTermQuestion = message.Kind is RaftMessageKind.TermQuery or RaftMessageKind.TermReply;
        if (message.To != members.Self
            || (message.Term.Value == 0 && !isTermQuestion) || message.Term.Value >= ValueMax
            || message.Index.Value >= ValueMax || message.Hint.Value >= ValueMax
            || message.Commit.Value >= ValueMax || message.EntryCount < 0)
        {
            return false;
        }

        if (message.From == members.Self)
        {
            return message.Kind == RaftMessageKind.VoteReply && message.Term <= ownTerm;
        }

        return message.Kind switch
        {
            RaftMessageKind.PreVote or RaftMessageKind.Vote or RaftMessageKind.PreVoteReply or RaftMessageKind.VoteReply
                or RaftMessageKind.TimeoutNow or RaftMessageKind.TermQuery or RaftMessageKind.TermReply =>
                members.SelfVotes && members.IsVoter(message.From),
            RaftMessageKind.Append or RaftMessageKind.Heartbeat => members.IsVoter(message.From),
            RaftMessageKind.AppendReply or RaftMessageKind.HeartbeatReply => members.IsMember(message.From),
            _ => false,
        };
    }
}
