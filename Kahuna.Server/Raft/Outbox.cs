namespace Kahuna.Server.Raft;

/// <summary>The messages of the next Ready. Owned by one core; not thread-safe.</summary>
internal sealed class Outbox(Members members, Standing standing)
{
    private readonly Handover<OutgoingMessage> _messages = new();

    public Handover<OutgoingMessage> Messages => _messages;

    /// <summary>A message that promises nothing about this node's disk.</summary>
    public void SendNow(RaftMessage message) => _messages.Add(new OutgoingMessage(Complete(message), AfterDurable: false));

    /// <summary>A message that is a promise: only after all that it rests on is on stable storage.</summary>
    public void SendAfterDurable(RaftMessage message) => _messages.Add(new OutgoingMessage(Complete(message), AfterDurable: true));

    /// <summary>A refusal: it promises nothing, but it may show a term that is not yet on stable storage.</summary>
    public void SendRefusal(RaftMessage message) => _messages.Add(new OutgoingMessage(Complete(message), standing.PromisesUnsaved));

    /// <summary>Leadership ended: what a leader wanted to say is void, and its appends name a log that may be cut.</summary>
    public void DropLeaderMessages() => _messages.RemoveGathered(static outgoing =>
        outgoing.Message.Kind is RaftMessageKind.Append or RaftMessageKind.Heartbeat or RaftMessageKind.TimeoutNow);

    /// <summary>A state replaced the log: acknowledgements of what it held are void.</summary>
    public void DropAcknowledgements() => _messages.RemoveGathered(static outgoing =>
        outgoing.Message is { Kind: RaftMessageKind.AppendReply, Reject: false });

    private RaftMessage Complete(RaftMessage message)
    {
        message.From = members.Self;
        if (message.Kind is RaftMessageKind.AppendReply or RaftMessageKind.HeartbeatReply or RaftMessageKind.PreVoteReply)
        {
            message.Uncounted = !standing.IsCounted;
            message.Stalled = message.Kind == RaftMessageKind.HeartbeatReply && standing.IsStalled;
        }

        if (message.Term.Value == 0)
        {
            message.Term = standing.Term;
        }

        return message;
    }
}
