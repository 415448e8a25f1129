using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>Which messages the members of a group can mean for this node at all. Immutable; owned by one core.</summary>
internal sealed class MessageRules(Members members)
{
    /// <summary>Terms and indexes of peers above this are garbage: no log reaches it, and sums stay in range.</summary>
    private const ulong ValueMax = 1UL << 62;

    /// <summary>False for garbage, for a message that its sender may not send, and for one that is not for this node.</summary>
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
