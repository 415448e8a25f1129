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
    private readonly Members _members;
    private readonly MessageRules _rules;
    private readonly Standing _standing;
    private readonly EntryLog _log;
    private readonly Outbox _outbox;
    private readonly Roles _roles;
    private readonly Following _following;
    private readonly Leadership _leadership;
    private readonly Rejoining? _rejoining;
    private readonly ReadyTurns _turns;

    public RaftCore(RaftConfig config, RaftStart start)
    {
        _members = new Members(config);
        _rules = new MessageRules(_members);
        bool canMislead = _members.SelfVotes && _members.Voters.Length > 1;
        _standing = new Standing(start.HardState, canMislead || start.Voting == VotingRight.Amnesiac ? start.Voting : VotingRight.Full);
        _log = new EntryLog(config, start);
        InvariantException.Require(_log.LastTerm <= _standing.Term, "the recovered term is not behind the recovered log");
        _outbox = new Outbox(_members, _standing);
        _following = new Following(_log, isForgetful: start.Voting != VotingRight.Full);
        _leadership = new Leadership(config, _members, _log, _standing);
        var parts = new RoleParts(_outbox, _following, _leadership);
        _roles = new Roles(config, _members, _standing, _log, parts);
        _turns = new ReadyTurns(_standing, _log, parts);
        _rejoining = _standing.Voting is VotingRight.Rejoining or VotingRight.Amnesiac ? new Rejoining(config, _members, _standing, _log) : null;
    }

    // ---- Where it stands
    public RaftRole Role => _standing.Role;

    public Term Term => _standing.Term;

    /// <summary>The leader of the current term as far as known.</summary>
    public NodeId Leader => _standing.Leader;

    /// <summary>Whom to send callers to: the leader as far as known, or who is to lead next while this node hands leadership over.</summary>
    public NodeId LeaderToAsk => IsTransferring ? _leadership.TransferTarget : Leader;

    /// <summary>
    /// This node would lead badly for now: others go first. It campaigns when none of them has taken leadership for <see cref="Roles.ReluctantElections"/> election timeouts, and votes as
    /// ever. After a split vote it waits for a whole timeout. Set by the owner.
    /// </summary>
    public bool IsReluctant
    {
        get => _standing.IsReluctant;
        set => _standing.IsReluctant = value;
    }

    /// <summary>Set by the owner: its log has waited for its disk for an election timeout. This node does not campaign meanwhile, and says so to its leader.</summary>
    public bool IsStalled
    {
        get => _standing.IsStalled;
        set => _standing.IsStalled = value;
    }

    public LogIndex CommitIndex => _log.CommitIndex;

    public LogIndex LastIndex => _log.LastIndex;

    /// <summary>Last index that is on this node's stable storage.</summary>
    public LogIndex DurableIndex => _log.DurableIndex;

    /// <summary>The index before the first entry that may still be sent from the log.</summary>
    public LogIndex LogStart => _log.Start;

    /// <summary>This node grants votes and campaigns.</summary>
    public bool IsVoting => _standing.IsVoting;

    /// <summary>Term, vote and commit index as they stand now, handed out or not.</summary>
    public HardState Promises => new(_standing.Term, _standing.Vote, _log.CommitIndex);

    /// <summary>Term and vote differ from what was last handed out to be persisted.</summary>
    public bool PromisesUnsaved => _standing.PromisesUnsaved;

    /// <summary>Ticks since this node last heard the leader of its term, or led itself.</summary>
    public int TicksWithoutLeader => _roles.TicksWithoutLeader;

    /// <summary>Rejoining: the lost promises are made good and the vote of their terms is spent, as the hard state last handed out says. Once that is durable, <see cref="AllowVoting"/>.</summary>
    public bool CanRejoin => !IsVoting && _rejoining is { IsRestored: true } && !_standing.PromisesUnsaved;

    // ---- Inputs

    /// <summary>Start only: hands over the recovered entries above the applied index, first index given, in EntryCodec; they count as durable.</summary>
    public void Restore(LogIndex first, ReadOnlySpan<byte> entries) => _log.Restore(first, entries);

    /// <summary>One tick of the owner's clock has passed.</summary>
    public void Tick()
    {
        RequireRestored();
        _log.Tick();
        _rejoining?.Tick(_outbox);
        _roles.CountSilence();
        if (Role == RaftRole.Leader)
        {
            if (!_leadership.Tick())
            {
                _roles.LeaveLeadership();
            }
        }
        else if (_roles.ElectionTick() && !(IsReluctant && _roles.IsSomebodyElsesTurn))
        {
            Campaign();
        }
    }

    /// <summary>A message has arrived; <paramref name="entries"/> (EntryCodec) only with an append. Both are read during the call only.</summary>
    public void Step(in RaftMessage message, ReadOnlySpan<byte> entries)
    {
        RequireRestored();
        if (!_rules.IsAcceptable(message, Term))
        {
            return;
        }

        if (message.Kind == RaftMessageKind.TermQuery)
        {
            _roles.AnswerTermQuery(message);
        }
        else if (message.Kind == RaftMessageKind.TermReply)
        {
            TakeTerm(message);
        }
        else if (message.Term < Term)
        {
            _roles.AnswerStale(message);
        }
        else if (message.Term == Term || _roles.EnterTermOf(message))
        {
            StepInTerm(message, entries);
        }
    }

    private void StepInTerm(in RaftMessage message, ReadOnlySpan<byte> entries)
    {
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
                LookWhetherRestored();
                break;
            case RaftMessageKind.Heartbeat:
                _roles.AcceptLeader(message.From);
                _following.Heartbeat(message);
                break;
            case RaftMessageKind.TimeoutNow when IsVoting && !IsStalled:
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

    /// <summary>Leader: hands leadership to a caught-up voter; gives up after an election timeout. False when not leader, or the target is no other voter or may have stood still lately.</summary>
    public bool TryTransfer(NodeId target) => Role == RaftRole.Leader && _leadership.TryTransfer(target);

    /// <summary>Leader: the member that leadership is best given to; none when nobody could take it.</summary>
    public NodeId Successor() => Role == RaftRole.Leader ? _leadership.Successor() : NodeId.None;

    /// <summary>Leader: a transfer to this member would begin.</summary>
    public bool CanTransfer(NodeId target) => Role == RaftRole.Leader && _leadership.CanTransfer(target);

    /// <summary>Leader: this member has not said for about half a minute that its disk stands still.</summary>
    public bool IsSteady(NodeId member) => Role == RaftRole.Leader && _leadership.IsSteady(member);

    /// <summary>Leadership is being handed over: nothing new may be proposed.</summary>
    public bool IsTransferring => Role == RaftRole.Leader && _leadership.IsTransferring;

    /// <summary>Any role: campaign now (single node start, tests). A leader, a learner and a node without a vote stay what they are.</summary>
    public void Campaign()
    {
        RequireRestored();
        if (Role != RaftRole.Leader && _members.SelfVotes && IsVoting && !IsStalled)
        {
            _roles.StartPreVote();
        }
    }

    /// <summary>Entries up to <paramref name="index"/>, whose last has term <paramref name="term"/>, and every hard state handed out with or before them, are on this node's stable storage.</summary>
    public void Persisted(LogIndex index, Term term)
    {
        if (_log.Persisted(index, term) && Role == RaftRole.Leader)
        {
            _leadership.OwnLogPersisted();
        }

        LookWhetherRestored();
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

    // ---- A log that is cut, and snapshots (Raft §7)

    /// <summary>
    /// Storage no longer holds entries up to <paramref name="index"/>, which are applied and durable. Their terms are forgotten but for
    /// the last, and no follower is fed with them. Going back is no error and does nothing.
    /// </summary>
    public void CutThrough(LogIndex index) => _log.CutThrough(index);

    /// <summary>A state that ends with this entry is of use: the log does not hold the entry yet, and this node does not lead.</summary>
    public bool CanInstall(LogIndex index, Term term) => Role != RaftRole.Leader && index > CommitIndex && !_log.Matches(index, term);

    /// <summary>
    /// Follower: a state that ends with this entry, taken from a member that had committed it, replaces the log. False, and the state must not be
    /// used, when this node leads or is already as far: the entry is committed here, or in the log, where it stands behind what this node acknowledged.
    /// True: the owner uses the state and drops its log, and writes that new start to storage before, or in one batch with, the
    /// hard state of the next Ready (which has one): what waits for durability there rests on it. No Ready may be open.
    /// </summary>
    public bool InstallSnapshot(LogIndex index, Term term)
    {
        RequireRestored();
        InvariantException.Require(!_turns.IsOpen, "the log is not replaced under an open Ready");
        if (!CanInstall(index, term))
        {
            return false;
        }

        if (term > Term)
        {
            _roles.EnterTerm(term);
        }

        _log.Restart(index, term);
        _outbox.DropAcknowledgements();
        _following.Restarted(index, Leader);
        _standing.MarkUnsaved();
        LookWhetherRestored();
        return true;
    }

    /// <summary>
    /// Leader: the transfer to a follower of <see cref="SnapshotsWanted"/> ended. Installed: the follower has the state up to <paramref name="index"/>, and
    /// what comes after it is tried next. Else it is wanted again after an election timeout. Without effect when the need is over.
    /// </summary>
    public void SnapshotEnded(NodeId follower, LogIndex index, bool installed)
    {
        if (Role == RaftRole.Leader)
        {
            _leadership.SnapshotEnded(follower, index, installed);
        }
    }

    /// <summary>Leader: this member is fed by snapshot. No longer true while a transfer runs: it got there another way, and the transfer may stop.</summary>
    public bool AwaitsSnapshot(NodeId member) => Role == RaftRole.Leader && _leadership.AwaitsSnapshot(member);

    // ---- Members that lost their log, and their votes

    /// <summary>
    /// Leader: the member came back without its log. What it acknowledged no longer counts, nor do its answers until it acknowledges again. To be
    /// called before the first message of its new life is stepped, and after the last of its old one, on every node.
    /// </summary>
    public void ForgetFollower(NodeId member)
    {
        if (Role == RaftRole.Leader)
        {
            _leadership.Forget(member);
        }
    }

    /// <summary>The hard state goes out with the next Ready, changed or not: the owner stores more beside it.</summary>
    public void SaveAgain() => _standing.MarkUnsaved();

    /// <summary>This node may vote: it is proven that it never took part, or <see cref="CanRejoin"/> was true and its hard state is durable.</summary>
    public void AllowVoting()
    {
        InvariantException.Require(_rejoining is null or { IsRestored: true } || _standing.Voting == VotingRight.Amnesiac, "a rejoining node votes only after it was restored");
        if (!IsVoting && _standing.Voting != VotingRight.Amnesiac)
        {
            _roles.AllowVoting();
        }
    }

    // ---- The Ready: from the first of its properties that is read until Advance it stands still; an append that cuts the
    // ---- log must not be stepped meanwhile, other inputs may and show in the next Ready.

    public bool HasReady => _turns.HasReady;

    /// <summary>The hard state must be persisted with this Ready's entries (term or vote changed, or entries are persisted and commit moved).</summary>
    public bool HardStateChanged => _turns.Open().HardStateChanged;

    /// <summary>The part of <see cref="HardStateChanged"/> that counts where entries are not stored, and no commit index is needed after a restart: term or vote changed, or the owner has more to store with them.</summary>
    public bool PromisesChanged => _turns.Open().PromisesChanged;

    public HardState HardState => _turns.Open().HardState;

    /// <summary>Entries to append to storage, [first, last]; empty when first is greater than last. Storage drops what it has at or above first.</summary>
    public (LogIndex First, LogIndex Last) Unpersisted => _turns.Open().Unpersisted;

    public ReadOnlySpan<OutgoingMessage> Messages => _turns.Open(_outbox.Messages);

    /// <summary>Entries to apply, [first, last]; empty when first is greater than last. What exceeds <see cref="RaftLimits.ApplyBytesMax"/> is left for the next Ready. A leader's committed entry may not yet be durable here: a majority of others has it.</summary>
    public (LogIndex First, LogIndex Last) Committed => _turns.Open().Committed;

    public ReadOnlySpan<ReadState> ReadStates => _turns.Open(_leadership.ReadStates);

    public ReadOnlySpan<LogFetch> Fetches => _turns.Open(_leadership.Fetches);

    /// <summary>Leader: followers that need a snapshot now; each is told once, until <see cref="SnapshotEnded"/>.</summary>
    public ReadOnlySpan<NodeId> SnapshotsWanted => _turns.Open(_leadership.SnapshotsWanted);

    /// <summary>The Ready has been carried out: persisted means handed to storage, sent means handed to the transport, committed means applied.</summary>
    public void Advance() => _turns.Advance();

    // ---- Entries in memory

    /// <summary>An entry that memory holds: anything above the applied or above the durable index, and some cache below.</summary>
    public ReadOnlySpan<byte> Payload(LogIndex index, out Term term, out EntryKind kind) => _log.Payload(index, out term, out kind);

    /// <summary>Appends entries [first, first + count) in EntryCodec.</summary>
    public void CopyEntries(LogIndex first, int count, ByteBuffer target) => _log.CopyEntries(first, count, target);

    /// <summary>Bytes of entries kept in memory at the most for a member that is behind; at first that of the limits.</summary>
    public long LogMemoryBytesMax
    {
        get => _log.MemoryBytesMax;
        set => _log.MemoryBytesMax = value;
    }

    /// <inheritdoc cref="EntryLog.CacheBytesMin"/>
    public long LogCacheBytesMin
    {
        set => _log.CacheBytesMin = value;
    }

    /// <summary>Bytes of the entries in memory.</summary>
    public long LogMemoryBytes => _log.MemoryBytes;

    /// <summary>The term of an entry from the log's start on.</summary>
    public Term TermOf(LogIndex index) => _log.TermAt(index);

    /// <summary>Leader: the highest index known to be on this member's log; 0 when unknown.</summary>
    public LogIndex MatchIndex(NodeId member) => Role == RaftRole.Leader ? _leadership.MatchIndex(member) : default;

    /// <summary>How far the group has committed, as leaders have told this node; more than <see cref="CommitIndex"/> while it lags behind.</summary>
    public LogIndex HeardCommit => _following.HeardCommit;

    /// <summary>Leader: this member answered within the last election timeout.</summary>
    public bool IsActive(NodeId member) => Role == RaftRole.Leader && _leadership.IsActive(member);

    /// <summary>Rejoining: another voter told its term. The last of them decides from which term on this node takes part again.</summary>
    private void TakeTerm(in RaftMessage message)
    {
        if (_rejoining is null)
        {
            return;
        }

        if (_rejoining.Told(message))
        {
            _roles.SpendVotesThrough(_rejoining.Latest);
            _standing.BeginToCount();
        }

        LookWhetherRestored();
    }

    /// <summary>A node without its log may have got it back. An amnesiac one has forgotten nothing else, so that it takes part again at once.</summary>
    private void LookWhetherRestored()
    {
        _rejoining?.Update(_following.Matched);
        if (_standing.Voting == VotingRight.Amnesiac && _rejoining!.IsRestored)
        {
            _roles.AllowVoting();
        }
    }

    private void RequireRestored() => InvariantException.Require(_log.IsRestored, "recovered entries are restored before the first input");
}
