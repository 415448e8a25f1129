namespace Kahuna.Server.Raft;

/// <summary>The messages of the next Ready. Owned by one core; not thread-safe.</summary>
internal sealed class Outbox(Members members, RoleState state)
{
    private readonly DoubleBuffer<OutgoingMessage> _messages = new();

    public DoubleBuffer<OutgoingMessage> Messages => _messages;

    /// <summary>Queues a message that promises nothing about this node's disk.</summary>
    public void SendNow(RaftMessage message) =>
        _messages.Add(new OutgoingMessage(Complete(message), AfterDurable: false));

    /// <summary>Queues a promise: it leaves only after everything it relies on is on stable storage.</summary>
    public void SendAfterDurable(RaftMessage message) =>
        _messages.Add(new OutgoingMessage(Complete(message), AfterDurable: true));

    /// <summary>
    /// Queues a refusal. It promises nothing, but waits when it would reveal a term that is not on stable storage yet.
    /// </summary>
    public void SendRefusal(RaftMessage message) =>
        _messages.Add(new OutgoingMessage(Complete(message), state.PromisesUnsaved));

    /// <summary>
    /// Drops a leader's messages after leadership ended: they are void, and their appends refer to a log that may be
    /// cut.
    /// </summary>
    public void DropLeaderMessages() => _messages.RemoveGathered(static outgoing =>
        outgoing.Message.Kind is RaftMessageKind.Append or RaftMessageKind.Heartbeat or RaftMessageKind.TimeoutNow);

    /// <summary>
    /// Drops acknowledgements after a snapshot replaced the log: they refer to entries that are gone.
    /// </summary>
    public void DropAcknowledgements() => _messages.RemoveGathered(static outgoing =>
        outgoing.Message is { Kind: RaftMessageKind.AppendReply, Reject: false });

    private RaftMessage Complete(RaftMessage message)
    {
        message.From = members.Self;
        if (message.Kind is RaftMessageKind.AppendReply
            or RaftMessageKind.HeartbeatReply
            or RaftMessageKind.PreVoteReply)
        {
            message.Uncounted = !state.IsCounted;
            message.Stalled = message.Kind == RaftMessageKind.HeartbeatReply && state.IsStalled;
        }

        if (message.Term.Value == 0)
        {
            message.Term = state.Term;
        }

        return message;
    }
}
