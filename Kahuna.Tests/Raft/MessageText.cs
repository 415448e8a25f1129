using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>Messages as a line of text.</summary>
internal static class MessageText
{
    public static string Of(in RaftMessage m)
    {
        string head = $"{m.From}->{m.To} {m.Kind} term {m.Term}";
        string refused = m.Reject ? " refused" : "";
        return m.Kind switch
        {
            RaftMessageKind.PreVote or RaftMessageKind.Vote => $"{head} last {m.Index}/{m.LogTerm}{(m.Transfer ? " transfer" : "")}",
            RaftMessageKind.Append => $"{head} after {m.Index}/{m.LogTerm} entries {m.EntryCount} commit {m.Commit}",
            RaftMessageKind.AppendReply when m.Reject => $"{head}{refused} {m.Index} hint {m.Hint}/{m.LogTerm}",
            RaftMessageKind.AppendReply => $"{head} match {m.Index}",
            RaftMessageKind.Heartbeat => $"{head} sent {m.Index} commit {m.Commit} round {m.Round}",
            RaftMessageKind.HeartbeatReply => $"{head}{refused} sent {m.Hint} received {m.Index} round {m.Round}",
            _ => $"{head}{refused}",
        };
    }
}
