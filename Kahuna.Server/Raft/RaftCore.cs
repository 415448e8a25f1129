using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// Raft for one group: it computes and never waits. Inputs are <see cref="Step"/>, <see cref="Tick"/>,
/// <see cref="TryPropose"/>, <see cref="TryRead"/>, <see cref="Persisted"/>; after any number of them the owner carries
/// out the <i>Ready</i> (the properties below) and calls <see cref="Advance"/>. Owned by one loop; not thread-safe.
/// </summary>
internal sealed class RaftCore
{
    /// <summary>Terms, indexes and rounds of peers above this are garbage: no log reaches it, and sums stay in range.</summary>
    private const ulong ValueMax = 1UL << 62;

    private readonly Members _members;
    private readonly Standing _standing;
    private readonly EntryLog _log;
    private readonly Outbox _outbox;
    private readonly Roles _roles;
    private readonly Following _following;
    private readonly Leadership _leadership;
    private Ready _ready;
    private bool _isOpen;

    public RaftCore(RaftConfig config, RaftStart start)
    {
        _members = new Members(config);
        _standing = new Standing(start.HardState);
        _log = new EntryLog(config, start);
        InvariantException.Require(_log.LastTerm <= _standing.Term, "the recovered term is not behind the recovered log");
        _outbox = new Outbox(_members, _standing);
        _following = new Following(_log);
        _leadership = new Leadership(config, _members, _log, _standing);
        _roles = new Roles(config, _members, _standing, _log, new RoleParts(_outbox, _following, _leadership));
    }

    // ---- Where it stands
    public RaftRole Role => _standing.Role;

    public Term Term => _standing.Term;

    /// <summary>The leader of the current term as far as known.</summary>
    public NodeId Leader => _standing.Leader;

    public LogIndex CommitIndex => _log.CommitIndex;

    public LogIndex LastIndex => _log.LastIndex;

    /// <summary>Last index that is on this node's stable storage.</summary>
    public LogIndex DurableIndex => _log.DurableIndex;

    // ---- Inputs

    /// <summary>Start only: hands over the recovered entries above the applied index, first index given, in EntryCodec; they count as durable.</summary>
    public void Restore(LogIndex first, ReadOnlySpan<byte> entries) => _log.Restore(first, entries);

    /// <summary>One tick of the owner's clock has passed.</summary>
    public void Tick()
    {
        RequireRestored();
        if (Role == RaftRole.Leader)
        {
            if (!_leadership.Tick())
            {
                _roles.LeaveLeadership();
            }
        }
        else if (_roles.ElectionTick())
        {
            Campaign();
        }
    }

    /// <summary>A message has arrived; <paramref name="entries"/> (EntryCodec) only with an append. Both are read during the call only.</summary>
    public void Step(in RaftMessage message, ReadOnlySpan<byte> entries)
    {
        RequireRestored();
        if (!IsAcceptable(message))
        {
            return;
        }

        if (message.Term < Term)
        {
            AnswerStale(message);
            return;
        }

        if (message.Term > Term && !_roles.EnterTermOf(message))
        {
            return;
        }

        switch (message.Kind)
        {
            case RaftMessageKind.PreVote:
                _roles.AnswerPreVote(message);
                break;
            case RaftMessageKind.Vote:
                _roles.AnswerVote(message);
                break;
            case RaftMessageKind.PreVoteReply when Role == RaftRole.PreCandidate && (message.Reject || message.Term > Term):
                _roles.CountPreVote(message.From, granted: !message.Reject);
                break;
            case RaftMessageKind.VoteReply when Role == RaftRole.Candidate && message.Term == Term:
                _roles.CountVote(message.From, granted: !message.Reject);
                break;
            case RaftMessageKind.Append:
                _roles.AcceptLeader(message.From);
                _following.Append(message, entries);
                break;
            case RaftMessageKind.Heartbeat:
                _roles.AcceptLeader(message.From);
                _following.Heartbeat(message);
                break;
            case RaftMessageKind.TimeoutNow:
                _roles.AcceptLeader(message.From);
                _roles.StartElection(transfer: true);
                break;
            case RaftMessageKind.AppendReply when Role == RaftRole.Leader:
                _leadership.AppendAnswered(message);
                break;
            case RaftMessageKind.HeartbeatReply when Role == RaftRole.Leader:
                _leadership.HeartbeatAnswered(message);
                break;
            default:
                // An answer to a question that this node no longer asks.
                break;
        }
    }

    /// <summary>Leader: appends one entry (the payload is copied). False when not leader or leadership is being transferred; nothing was done then.</summary>
    public bool TryPropose(EntryKind kind, ReadOnlySpan<byte> payload, out LogIndex index)
    {
        if (Role != RaftRole.Leader || _leadership.IsTransferring)
        {
            index = default;
            return false;
        }

        index = _log.Append(Term, kind, payload);
        return true;
    }

    /// <summary>
    /// Leader: registers a linearizable read. Reads registered before the next Ready share a ticket, and asking for
    /// <see cref="HasReady"/> ends it: a ticket must not be given to a read that came later. A ticket is confirmed by a later <see cref="ReadStates"/> or, when leadership is lost, never. False when not leader.
    /// </summary>
    public bool TryRead(out ulong ticket)
    {
        ticket = Role == RaftRole.Leader ? _leadership.Read() : 0;
        return ticket != 0;
    }

    /// <summary>Leader: hands leadership to a caught-up voter; gives up after an election timeout. False when not leader or the target is no other voter.</summary>
    public bool TryTransfer(NodeId target) => Role == RaftRole.Leader && _leadership.TryTransfer(target);

    /// <summary>Any role: campaign now (single node start, tests). A leader and a learner stay what they are.</summary>
    public void Campaign()
    {
        RequireRestored();
        if (Role != RaftRole.Leader && _members.SelfVotes)
        {
            _roles.StartPreVote();
        }
    }

    /// <summary>
    /// Entries up to <paramref name="index"/>, whose last has term <paramref name="term"/>, and every hard state handed out
    /// with or before them, are on this node's stable storage.
    /// </summary>
    public void Persisted(LogIndex index, Term term)
    {
        if (_log.Persisted(index, term) && Role == RaftRole.Leader)
        {
            _leadership.OwnLogPersisted();
        }
    }

    /// <summary>A frame to this follower was lost on the way out (queue full, link down): probe instead of pipelining.</summary>
    public void ReportUnreachable(NodeId follower)
    {
        if (Role == RaftRole.Leader)
        {
            _leadership.Unreachable(follower);
        }
    }

    /// <summary>
    /// The answer to a <see cref="LogFetch"/>: encoded entries from <paramref name="first"/> on (empty: could not be read; it is
    /// asked again later). True with the append to send, whose entries are those given and not in the core's memory.
    /// </summary>
    public bool CompleteFetch(NodeId follower, LogIndex first, ReadOnlySpan<byte> entries, out RaftMessage append)
    {
        append = default;
        return Role == RaftRole.Leader && _leadership.CompleteFetch(follower, first, entries, out append);
    }

    // ---- The Ready: from the first of its properties that is read until Advance it stands still; an append that cuts the
    // ---- log must not be stepped meanwhile, other inputs may and show in the next Ready.

    public bool HasReady
    {
        get
        {
            if (_isOpen)
            {
                return true;
            }

            Prepare();
            return _outbox.HasGathered || _leadership.ReadStates.HasGathered || _leadership.Fetches.HasGathered
                || _standing.PromisesUnsaved || _log.LastIndex > _log.HandedOutIndex || _log.CommitIndex > _log.AppliedIndex;
        }
    }

    /// <summary>The hard state must be persisted with this Ready's entries (term or vote changed, or entries are persisted and commit moved).</summary>
    public bool HardStateChanged => Opened().HardStateChanged;

    public HardState HardState => Opened().HardState;

    /// <summary>Entries to append to storage, [first, last]; empty when first is greater than last. Storage drops what it has at or above first.</summary>
    public (LogIndex First, LogIndex Last) Unpersisted => Opened().Unpersisted;

    public ReadOnlySpan<OutgoingMessage> Messages
    {
        get
        {
            Opened();
            return _outbox.Open;
        }
    }

    /// <summary>Entries to apply, [first, last]; empty when first is greater than last. A leader's committed entry may not yet be durable here: a majority of others has it.</summary>
    public (LogIndex First, LogIndex Last) Committed => Opened().Committed;

    public ReadOnlySpan<ReadState> ReadStates
    {
        get
        {
            Opened();
            return _leadership.ReadStates.Open;
        }
    }

    public ReadOnlySpan<LogFetch> Fetches
    {
        get
        {
            Opened();
            return _leadership.Fetches.Open;
        }
    }

    /// <summary>The Ready has been carried out: persisted means handed to storage, sent means handed to the transport, committed means applied.</summary>
    public void Advance()
    {
        if (!_isOpen)
        {
            return;
        }

        if (_ready.HardStateChanged)
        {
            _standing.MarkSaved(_ready.HardState);
        }

        if (_ready.Unpersisted.First <= _ready.Unpersisted.Last)
        {
            _log.MarkHandedOut(_ready.Unpersisted.First, _ready.Unpersisted.Last);
        }

        if (_ready.Committed.First <= _ready.Committed.Last)
        {
            _log.MarkApplied(_ready.Committed.First, _ready.Committed.Last);
        }

        _outbox.CloseReady();
        _leadership.ReadStates.CloseReady();
        _leadership.Fetches.CloseReady();
        _log.OpenThrough = default;
        _isOpen = false;
        _log.Trim(Role == RaftRole.Leader ? _leadership.HeldByActive : _log.LastIndex);
    }

    // ---- Entries in memory

    /// <summary>An entry that memory holds: anything above the applied or above the durable index, and some cache below.</summary>
    public ReadOnlySpan<byte> Payload(LogIndex index, out Term term, out EntryKind kind) => _log.Payload(index, out term, out kind);

    /// <summary>Appends entries [first, first + count) in EntryCodec.</summary>
    public void CopyEntries(LogIndex first, int count, ByteBuffer target) => _log.CopyEntries(first, count, target);

    /// <summary>Leader: the highest index known to be on this member's log; 0 when unknown.</summary>
    public LogIndex MatchIndex(NodeId member) => Role == RaftRole.Leader ? _leadership.MatchIndex(member) : default;

    /// <summary>Leader: this member answered within the last election timeout.</summary>
    public bool IsActive(NodeId member) => Role == RaftRole.Leader && _leadership.IsActive(member);

    // ---- Ready

    private void Prepare()
    {
        _following.Prepare(_outbox);
        if (Role == RaftRole.Leader)
        {
            _leadership.Prepare(_outbox);
        }
    }

    private ref readonly Ready Opened()
    {
        if (!_isOpen)
        {
            Prepare();
            bool hasEntries = _log.LastIndex > _log.HandedOutIndex;
            _ready = new Ready(
                new HardState(Term, _standing.Vote, _log.CommitIndex),
                _standing.PromisesUnsaved || (hasEntries && _standing.CommitUnsaved(_log.CommitIndex)),
                (_log.HandedOutIndex.Next(), _log.LastIndex),
                (_log.AppliedIndex.Next(), _log.CommitIndex));
            _outbox.OpenReady();
            _leadership.ReadStates.OpenReady();
            _leadership.Fetches.OpenReady();
            _log.OpenThrough = _log.LastIndex;
            _isOpen = true;
        }

        return ref _ready;
    }

    // ---- Messages by term and by sender

    /// <summary>False for a message that no member of this group can mean for this node.</summary>
    private bool IsAcceptable(in RaftMessage message)
    {
        if (message.To != _members.Self
            || message.Term.Value is 0 or >= ValueMax
            || message.Index.Value >= ValueMax || message.Hint.Value >= ValueMax
            || message.Commit.Value >= ValueMax || message.EntryCount < 0)
        {
            return false;
        }

        if (message.From == _members.Self)
        {
            return message.Kind == RaftMessageKind.VoteReply && message.Term <= Term;
        }

        return message.Kind switch
        {
            RaftMessageKind.PreVote or RaftMessageKind.Vote or RaftMessageKind.PreVoteReply or RaftMessageKind.VoteReply or RaftMessageKind.TimeoutNow =>
                _members.SelfVotes && _members.IsVoter(message.From),
            RaftMessageKind.Append or RaftMessageKind.Heartbeat => _members.IsVoter(message.From),
            RaftMessageKind.AppendReply or RaftMessageKind.HeartbeatReply => _members.IsMember(message.From),
            _ => false,
        };
    }

    /// <summary>A message of an earlier term changes nothing here, but its sender learns the term (Raft §5.1).</summary>
    private void AnswerStale(in RaftMessage message)
    {
        RaftMessageKind answer = message.Kind switch
        {
            RaftMessageKind.Append => RaftMessageKind.AppendReply,
            RaftMessageKind.Heartbeat => RaftMessageKind.HeartbeatReply,
            RaftMessageKind.PreVote => RaftMessageKind.PreVoteReply,
            RaftMessageKind.Vote => RaftMessageKind.VoteReply,
            _ => RaftMessageKind.None,
        };
        if (answer != RaftMessageKind.None)
        {
            _outbox.SendRefusal(new RaftMessage { Kind = answer, To = message.From, Reject = true });
        }
    }

    private void RequireRestored() => InvariantException.Require(_log.IsRestored, "recovered entries are restored before the first input");
}
