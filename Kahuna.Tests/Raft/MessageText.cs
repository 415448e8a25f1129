using Kahuna.Server.Raft;

namespace Kahuna.Tests.Raft;

/// <summary>Messages as a line of text.</summary>
internal static class MessageText
{
    public static string Of(in RaftMessage m)
    {
        string head = $"{m.From}->{m.To} {m.Kind} term {m.Term}";
        string refused = m.Reject ? " refused" : "";
        string uncounted = m.Uncounted ? " uncounted" : "";
        return m.Kind switch
        {
            RaftMessageKind.PreVote or RaftMessageKind.Vote =>
                $"{head} last {m.Index}/{m.LogTerm}{(m.Transfer ? " transfer" : "")}",
            RaftMessageKind.Append => $"{head} after {m.Index}/{m.LogTerm} entries {m.EntryCount} commit {m.Commit}",
            RaftMessageKind.AppendReply when m.Reject =>
                $"{head}{refused} {m.Index} hint {m.Hint}/{m.LogTerm}{uncounted}",
            RaftMessageKind.AppendReply => $"{head} match {m.Index}{uncounted}",
            RaftMessageKind.Heartbeat =>
                $"{head} sent {m.Index}{(m.InOrder ? " in order" : "")} commit {m.Commit} round {m.Round}",
            RaftMessageKind.HeartbeatReply =>
                $"{head}{refused} sent {m.Hint} received {m.Index} round "
                    + $"{m.Round}{uncounted}{(m.Stalled ? " stalled" : "")}",
            RaftMessageKind.TermReply when m.Index.Value > 0 => $"{head} leads up to {m.Index}",
            _ => $"{head}{refused}",
        };
    }
}
