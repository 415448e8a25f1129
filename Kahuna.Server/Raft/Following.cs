using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// What a follower or learner does with its leader's appends and heartbeats (Raft §5.3). Answers wait for the Ready, so that
/// one acknowledgement stands for all appends of a turn. Owned by one core; not thread-safe.
/// </summary>
/// <param name="log">The own log.</param>
/// <param name="isForgetful">This node may have acknowledged entries, to the leader that it follows now, that its log does not hold.</param>
internal sealed class Following(EntryLog log, bool isForgetful)
{
    private LogIndex _matched;
    private bool _acknowledge;
    private NodeId _acknowledgeTo;
    private bool _refuse;
    private RaftMessage _refusal;
    private bool _answerHeartbeat;
    private RaftMessage _heartbeatReply;

    /// <summary>Up to here the log, durable or not, is known to agree with that of the current term's leader.</summary>
    public LogIndex Matched => _matched;

    /// <summary>How far the group has committed, as its leaders have told. What is committed stays so, in every later term.</summary>
    public LogIndex HeardCommit { get; private set; }

    /// <summary>A new term: nothing is known to match its leader's log, and nobody waits for the old answers.</summary>
    public void EnterTerm()
    {
        _matched = default;
        _acknowledge = false;
        _refuse = false;
        _answerHeartbeat = false;
    }

    /// <summary>Takes an append of the current leader. False, with nothing changed, when it is malformed.</summary>
    public bool Append(in RaftMessage message, ReadOnlySpan<byte> entries)
    {
        if (!IsWellFormed(message, entries))
        {
            return false;
        }

        Hear(message.Commit);

        // Below the own start everything is committed, so that the leader has it too; its terms are forgotten here.
        if (message.Index >= log.Start && !log.Matches(message.Index, message.LogTerm))
        {
            InvariantException.Require(message.Index > log.CommitIndex, "a leader holds every committed entry");
            Refuse(message);
            return true;
        }

        LogIndex last = message.Index + (ulong)message.EntryCount;
        Store(message, entries);
        LogIndex agreed = last > log.CommitIndex ? last : log.CommitIndex;
        if (agreed > _matched)
        {
            _matched = agreed;
        }

        _acknowledge = true;
        _acknowledgeTo = message.From;
        TakeCommit(message.Commit < last ? message.Commit : last);
        return true;
    }

    public void Heartbeat(in RaftMessage message)
    {
        Hear(message.Hint);

        // What the leader takes for acknowledged may have been acknowledged by a log that is lost.
        LogIndex held = isForgetful ? _matched : log.LastIndex;
        TakeCommit(message.Commit < held ? message.Commit : held);

        // Of several heartbeats the newest round is answered, which confirms the older ones, and the one that says most was sent: it shows what is lost.
        ulong round = _answerHeartbeat ? Math.Max(_heartbeatReply.Round, message.Round) : message.Round;
        LogIndex sent = _answerHeartbeat && _heartbeatReply.Hint > message.Index ? _heartbeatReply.Hint : message.Index;
        _heartbeatReply = new RaftMessage
        {
            Kind = RaftMessageKind.HeartbeatReply,
            To = message.From,
            Index = _matched,
            Hint = sent,
            Round = round,
        };
        _answerHeartbeat = true;
    }

    /// <summary>A state that ends with <paramref name="index"/> replaced the log. It is committed, so that every later leader holds it.</summary>
    public void Restarted(LogIndex index, NodeId leader)
    {
        _matched = index;
        _refuse = false;
        _acknowledge = !leader.IsNone;
        _acknowledgeTo = leader;
    }

    /// <summary>Queues the answers that gathered.</summary>
    public void Prepare(Outbox outbox)
    {
        if (_answerHeartbeat)
        {
            _answerHeartbeat = false;
            outbox.SendNow(_heartbeatReply);
        }

        if (_refuse)
        {
            _refuse = false;
            outbox.SendRefusal(_refusal);
        }

        if (_acknowledge)
        {
            _acknowledge = false;
            outbox.SendAfterDurable(new RaftMessage
            {
                Kind = RaftMessageKind.AppendReply,
                To = _acknowledgeTo,
                Index = _matched,
            });
        }
    }

    /// <summary>Skips what the log has, cuts what contradicts the leader, appends the rest.</summary>
    private void Store(in RaftMessage message, ReadOnlySpan<byte> entries)
    {
        LogIndex index = message.Index;
        ReadOnlySpan<byte> rest = entries;
        while (!rest.IsEmpty)
        {
            index = index.Next();
            ReadOnlySpan<byte> encoded = rest;
            InvariantException.Require(EntryCodec.TryRead(ref rest, out Term term, out _, out _), "checked entries decode");
            if (index < log.Start || log.Matches(index, term))
            {
                continue;
            }

            if (index <= log.LastIndex)
            {
                log.Cut(index);
            }

            log.AppendEncoded(term, encoded[..^rest.Length]);
        }
    }

    private void Refuse(in RaftMessage message)
    {
        // The last own index at which the leader's log can agree: everything of later terms is skipped at once. It agrees at the commit index for sure.
        LogIndex hint = log.LastAtMost(message.Index, message.LogTerm);
        hint = hint > log.CommitIndex ? hint : log.CommitIndex;
        _refusal = new RaftMessage
        {
            Kind = RaftMessageKind.AppendReply,
            To = message.From,
            Index = message.Index,
            LogTerm = log.TermAt(hint),
            Hint = hint,
            Reject = true,
        };
        _refuse = true;
    }

    private void Hear(LogIndex commit) => HeardCommit = commit > HeardCommit ? commit : HeardCommit;

    private void TakeCommit(LogIndex commit)
    {
        if (commit > log.CommitIndex)
        {
            log.Commit(commit);
        }
    }

    private static bool IsWellFormed(in RaftMessage message, ReadOnlySpan<byte> entries)
    {
        if (message.LogTerm > message.Term || (message.Index.Value == 0) != (message.LogTerm.Value == 0))
        {
            return false;
        }

        int count = 0;
        Term term = message.LogTerm;
        ReadOnlySpan<byte> rest = entries;
        while (!rest.IsEmpty)
        {
            if (!EntryCodec.TryRead(ref rest, out Term next, out _, out _) || next < term || next > message.Term || next.Value == 0)
            {
                return false;
            }

            term = next;
            count++;
        }

        return count == message.EntryCount;
    }
}
