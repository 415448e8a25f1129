using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// How a follower or learner handles its leader's appends and heartbeats (Raft §5.3). Answers wait for the Ready, so
/// that one acknowledgement covers all appends of a turn. Owned by one core; not thread-safe.
/// </summary>
/// <param name="log">This node's log.</param>
/// <param name="isForgetful">This node may have acknowledged entries to its present leader that its log no longer
/// holds.</param>
internal sealed class Following(EntryLog log, bool isForgetful)
{
    private LogIndex _matched;
    private bool _acknowledge;
    private NodeId _acknowledgeTo;
    private bool _refuse;
    private RaftMessage _refusal;
    private bool _answerHeartbeat;
    private RaftMessage _heartbeatReply;

    /// <summary>
    /// Up to this index the log, durable or not, is known to match the log of the current term's leader.
    /// </summary>
    public LogIndex Matched => _matched;

    /// <summary>
    /// The highest commit index that a leader has reported. Committed entries stay committed in every later term.
    /// </summary>
    public LogIndex HeardCommit { get; private set; }

    /// <summary>Starts a new term: nothing is known to match its leader's log, and pending answers are void.</summary>
    public void EnterTerm()
    {
        _matched = default;
        _acknowledge = false;
        _refuse = false;
        _answerHeartbeat = false;
    }

    /// <summary>Handles an append of the current leader. False, with nothing changed, when it is malformed.</summary>
    public bool Append(in RaftMessage message, ReadOnlySpan<byte> entries)
    {
        if (!IsWellFormed(message, entries))
        {
            return false;
        }

        Hear(message.Commit);

        // Entries below the start are committed, so the leader has them too. Their terms are no longer known here.
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

        // The leader may count an acknowledgement of a log that was lost since.
        LogIndex held = isForgetful ? _matched : log.LastIndex;
        TakeCommit(message.Commit < held ? message.Commit : held);

        // One reply answers several heartbeats: with the newest round, which confirms the older ones, and with the
        // highest index sent, which shows what was lost.
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

    /// <summary>
    /// A snapshot up to <paramref name="index"/> replaced the log. It is committed, so every later leader holds those
    /// entries.
    /// </summary>
    public void Restarted(LogIndex index, NodeId leader)
    {
        _matched = index;
        _refuse = false;
        _acknowledge = !leader.IsNone;
        _acknowledgeTo = leader;
    }

    /// <summary>Queues the pending answers.</summary>
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

    /// <summary>
    /// Skips entries that the log has, cuts those that conflict with the leader's, and appends the rest.
    /// </summary>
    private void Store(in RaftMessage message, ReadOnlySpan<byte> entries)
    {
        LogIndex index = message.Index;
        ReadOnlySpan<byte> rest = entries;
        while (!rest.IsEmpty)
        {
            index = index.Next();
            ReadOnlySpan<byte> encoded = rest;
            InvariantException.Require(
                EntryCodec.TryRead(ref rest, out Term term, out _, out _), "checked entries decode");
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
        // The last index of this log at which the leader's can match. Whole later terms are skipped. The logs always
        // match at the commit index.
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
            if (!EntryCodec.TryRead(ref rest, out Term next, out _, out _)
                || next < term
                || next > message.Term
                || next.Value == 0)
            {
                return false;
            }

            term = next;
            count++;
        }

        return count == message.EntryCount;
    }
}
