using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Raft;

/// <summary>
/// Raft for one group. It computes and never waits. Inputs are <see cref="Step"/>, <see cref="Tick(ulong)"/>,
/// <see cref="TryPropose(EntryKind, int, out LogIndex, out Span{byte})"/>, <see cref="TryRead"/>,
/// <see cref="Persisted"/>; after any number of inputs the owner carries out the <i>Ready</i>
/// (<see cref="TakeReady"/>) and calls <see cref="Advance"/>. Owned by one loop; not thread-safe.
/// </summary>
internal sealed class RaftCore
{
    private readonly Members _members;
    private readonly MessageRules _rules;
    private readonly RoleState _state;
    private readonly EntryLog _log;
    private readonly Outbox _outbox;
    private readonly Roles _roles;
    private readonly Following _following;
    private readonly Leadership _leadership;
    private readonly Rejoining? _rejoining;
    private readonly ReadyTurns _turns;
    private ulong _ticks;

    public RaftCore(RaftConfig config, RaftStart start)
    {
        _members = new Members(config);
        _rules = new MessageRules(_members);
        bool canMislead = _members.SelfVotes && _members.Voters.Length > 1;
        _state = new RoleState(
            start.HardState, canMislead || start.Voting == VotingRight.Amnesiac ? start.Voting : VotingRight.Full,
            new VotePromise(config.Voters.Count > 1 ? config.PromisedBeforeMs : 0, config.PromiseMs));
        _log = new EntryLog(config, start);
        InvariantException.Require(_log.LastTerm <= _state.Term, "the recovered term is not behind the recovered log");
        _outbox = new Outbox(_members, _state);
        _following = new Following(
            _log, config.LevelMax, _state.Promise, isForgetful: start.Voting != VotingRight.Full);
        _leadership = new Leadership(config, _members, _log, _state);
        var parts = new RoleParts(_outbox, _following, _leadership);
        _roles = new Roles(config, _members, _state, _log, parts);
        _turns = new ReadyTurns(_state, _log, parts);
        _rejoining = _state.Voting is VotingRight.Rejoining or VotingRight.Amnesiac
            ? new Rejoining(config, _members, _state, _log)
            : null;
    }

    // ---- State
    public RaftRole Role => _state.Role;

    public Term Term => _state.Term;

    /// <summary>The leader of the current term, as far as known.</summary>
    public NodeId Leader => _state.Leader;

    /// <summary>
    /// The node to redirect clients to: the known leader, or the transfer target while this node transfers leadership.
    /// </summary>
    public NodeId LeaderToAsk => IsTransferring ? _leadership.Transfer.Target : Leader;

    /// <summary>
    /// This node should not lead for now. It campaigns only after <see cref="Roles.ReluctantElections"/> election
    /// timeouts without a leader, and waits a whole timeout after a split vote. It votes normally. What it hears does
    /// not count for <see cref="HeardLeaderAt"/> and <see cref="HeardMajorityAt"/>: it was paused a short time ago, and
    /// the messages may have waited as long. Set by the owner, with <see cref="Now"/>.
    /// </summary>
    public bool IsReluctant
    {
        get => _state.IsReluctant;
        set => _state.IsReluctant = value;
    }

    /// <summary>
    /// The log has waited for its disk for an election timeout. This node then does not campaign, and reports it to its
    /// leader. Set by the owner.
    /// </summary>
    public bool IsStalled
    {
        get => _state.IsStalled;
        set => _state.IsStalled = value;
    }

    public LogIndex CommitIndex => _log.CommitIndex;

    public LogIndex LastIndex => _log.LastIndex;

    /// <summary>Last index on this node's stable storage.</summary>
    public LogIndex DurableIndex => _log.DurableIndex;

    /// <summary>The index before the first entry that the log still holds.</summary>
    public LogIndex LogStart => _log.Start;

    /// <summary>This node grants votes and campaigns.</summary>
    public bool IsVoting => _state.IsVoting;

    /// <summary>Current term, vote and commit index, handed out or not.</summary>
    public HardState Promises => new(_state.Term, _state.Vote, _log.CommitIndex);

    /// <summary>Term and vote differ from what was last handed out to be persisted.</summary>
    public bool PromisesUnsaved => _state.PromisesUnsaved;

    /// <summary>Ticks since this node last heard the leader of its term, or led itself.</summary>
    public int TicksWithoutLeader => _roles.TicksWithoutLeader;

    /// <summary>
    /// A majority answered a leader at this <see cref="Now"/>, or a little later, and that leader's heartbeat came here
    /// afterwards. Ticks do not count this: they can be late, and stop.
    /// </summary>
    public NodeTime HeardLeaderAt => _state.HeardLeaderAt;

    /// <summary>
    /// Of a leader: since this <see cref="Now"/>, or a later one, a majority has answered it, this node included.
    /// </summary>
    public NodeTime HeardMajorityAt => _leadership.HeardMajorityAt;

    /// <summary>
    /// Rejoining: the log is restored, and the last hard state handed out spends the vote of every term with a lost
    /// promise. Once it is durable, call <see cref="AllowVoting"/>.
    /// </summary>
    public bool CanRejoin => !IsVoting && _rejoining is { IsRestored: true } && !_state.PromisesUnsaved;

    /// <inheritdoc cref="EntryLog.Level"/>
    public FeatureLevel Level => _log.Level;

    /// <inheritdoc cref="Following.UnknownLevel"/>
    public FeatureLevel? UnknownLevel => _following.UnknownLevel;

    // ---- Inputs

    /// <summary>The cluster has at least this feature level: later own entries have it.</summary>
    public void RaiseLevel(FeatureLevel level) => _log.RaiseLevel(level);

    /// <summary>
    /// Restores the recovered entries above the applied index, in EntryCodec. They count as durable. Before the first
    /// input only.
    /// </summary>
    public void Restore(LogIndex first, ReadOnlySpan<byte> entries) => _log.Restore(first, entries);

    /// <summary>
    /// The time of the node's monotonic clock, read after all inputs that are still unanswered were received, and
    /// before their Ready is prepared. Leases rest on it; without it, and before it is first set, there are none.
    /// </summary>
    public NodeTime Now
    {
        get => _state.Now;
        set => _state.Promise.Now = value;
    }

    /// <summary>Counts one tick of the owner's clock.</summary>
    public void Tick() => Tick(_ticks + 1);

    /// <summary>
    /// Counts one tick, the one with this number. Groups with the same numbers send their heartbeats in the same ticks,
    /// so that one frame carries them.
    /// </summary>
    public void Tick(ulong number)
    {
        _ticks = number;
        RequireRestored();
        _log.Tick();
        _rejoining?.Tick(_outbox);
        _roles.CountSilence();
        if (Role == RaftRole.Leader)
        {
            if (!_leadership.Tick(number, out bool yields))
            {
                _roles.LeaveLeadership(yields);
            }
        }
        else if (_roles.ElectionTick() && !(IsReluctant && _roles.ShouldYield))
        {
            Campaign();
        }
    }

    /// <summary>
    /// Handles a message. <paramref name="entries"/> (EntryCodec) come with appends only. Neither is kept after the
    /// call.
    /// </summary>
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
            RecordTerm(message);
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
            case RaftMessageKind.PreVoteReply when Role == RaftRole.PreCandidate
                && (message.Reject || message.Term > Term):
                _roles.CountPreVote(message.From, granted: !message.Reject);
                break;
            case RaftMessageKind.VoteReply when Role == RaftRole.Candidate && message.Term == Term:
                _roles.CountVote(message.From, granted: !message.Reject);
                break;
            case RaftMessageKind.Append:
                _roles.AcceptLeader(message.From);
                _following.Append(message, entries);
                CheckRestored();
                break;
            case RaftMessageKind.Heartbeat:
                _roles.AcceptLeader(message.From);
                _state.HearLeader(message.AgeMs);
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
                // A reply to a request that is no longer pending.
                break;
        }
    }

    /// <summary>
    /// Leader: appends one entry and copies its payload. False, with nothing done, when not leader or while leadership
    /// is being transferred.
    /// </summary>
    public bool TryPropose(EntryKind kind, ReadOnlySpan<byte> payload, out LogIndex index)
    {
        bool isProposed = TryPropose(kind, payload.Length, out index, out Span<byte> room);
        if (isProposed)
        {
            payload.CopyTo(room);
        }

        return isProposed;
    }

    /// <summary>
    /// As above, for a payload that the caller writes where the entry lies. It fills <paramref name="payload"/> before
    /// any other call.
    /// </summary>
    public bool TryPropose(EntryKind kind, int payloadBytes, out LogIndex index, out Span<byte> payload)
    {
        if (Role != RaftRole.Leader || _leadership.Transfer.IsOn)
        {
            index = default;
            payload = default;
            return false;
        }

        index = _log.Append(Term, kind, payloadBytes, out payload);
        return true;
    }

    /// <summary>
    /// Leader: registers a linearizable read. Reads registered before the next Ready share a ticket;
    /// <see cref="PrepareReady"/> closes it, and later reads need a new one. A later entry of
    /// <see cref="Ready.ReadStates"/> confirms the ticket; lost leadership never does. False when not leader.
    /// </summary>
    public bool TryRead(out ulong ticket)
    {
        ticket = Role == RaftRole.Leader ? _leadership.Read() : 0;
        return ticket != 0;
    }

    /// <summary>
    /// Leader: transfers leadership to another voter once it has caught up; gives up after an election timeout. False
    /// when not leader, or when <see cref="CanTransfer"/> is false.
    /// </summary>
    /// <param name="target">The voter.</param>
    /// <param name="note">A number for its owner, as <see cref="RaftMessage.Round"/> of the message that asks it to
    /// campaign; the core does not read it.</param>
    public bool TryTransfer(NodeId target, ulong note = 0) =>
        Role == RaftRole.Leader && _leadership.Transfer.TryBegin(target, note);

    /// <summary>Leader: the best member to transfer leadership to, or none.</summary>
    public NodeId Successor() => Role == RaftRole.Leader ? _leadership.Transfer.Successor() : NodeId.None;

    /// <summary>Leader: leadership may be transferred to this member now.</summary>
    public bool CanTransfer(NodeId target) =>
        Role == RaftRole.Leader && _leadership.Transfer.ObstacleOf(target) == TransferObstacle.None;

    /// <summary>Leader: why leadership may not go to this member now.</summary>
    public TransferObstacle ObstacleOf(NodeId target) => _leadership.Transfer.ObstacleOf(target);

    /// <summary>Leader: this member has not reported a stalled disk for about half a minute.</summary>
    public bool IsSteady(NodeId member) => Role == RaftRole.Leader && _leadership.Transfer.IsSteady(member);

    /// <summary>Leadership is being transferred: proposals are refused.</summary>
    public bool IsTransferring => Role == RaftRole.Leader && _leadership.Transfer.IsOn;

    /// <summary>
    /// Campaigns now (start of a single node, tests). No effect on a leader, a learner or a node that may not vote.
    /// </summary>
    public void Campaign()
    {
        RequireRestored();
        if (Role != RaftRole.Leader && _members.SelfVotes && IsVoting && !IsStalled && !_state.Promise.Binds)
        {
            _roles.StartPreVote();
        }
    }

    /// <summary>
    /// Reports that entries up to <paramref name="index"/>, the last of <paramref name="term"/>, are on stable storage,
    /// with every hard state handed out until then.
    /// </summary>
    public void Persisted(LogIndex index, Term term)
    {
        if (_log.Persisted(index, term) && Role == RaftRole.Leader)
        {
            _leadership.OwnLogPersisted();
        }

        CheckRestored();
    }

    /// <summary>
    /// Reports that a frame to this follower was lost (queue full, link down): probe instead of pipelining.
    /// </summary>
    public void ReportUnreachable(NodeId follower)
    {
        if (Role == RaftRole.Leader)
        {
            _leadership.Unreachable(follower);
        }
    }

    /// <summary>
    /// Answers a <see cref="LogFetch"/> with encoded entries from <paramref name="first"/> on. Empty means that they
    /// could not be read; the core asks again later. True with the append to send; its entries are the given ones, not
    /// the core's.
    /// </summary>
    public bool CompleteFetch(NodeId follower, LogIndex first, ReadOnlySpan<byte> entries, out RaftMessage append)
    {
        append = default;
        return Role == RaftRole.Leader && _leadership.CompleteFetch(follower, first, entries, out append);
    }

    // ---- Log truncation and snapshots (Raft §7)

    /// <summary>
    /// Reports that storage no longer holds entries up to <paramref name="index"/>, which are applied and durable.
    /// Their terms are forgotten except the last, and they are no longer replicated. A smaller index than before has no
    /// effect.
    /// </summary>
    public void CutThrough(LogIndex index) => _log.CutThrough(index);

    /// <summary>
    /// A snapshot up to this entry would help: the log does not hold the entry yet, and this node does not lead.
    /// </summary>
    public bool CanInstall(LogIndex index, Term term) =>
        Role != RaftRole.Leader && index > CommitIndex && !_log.Matches(index, term);

    /// <summary>
    /// Follower: replaces the log by a snapshot up to this entry, from a member that had committed it. False when this
    /// node leads, or has committed or logged the entry; the owner must not use the snapshot then, because the log may
    /// hold acknowledged entries beyond it. On true the owner installs the snapshot and drops its log. It writes the
    /// log's new start to storage before, or in one batch with, the hard state of the next Ready, because the promises
    /// of that Ready rely on it. No Ready may be open.
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
        _state.MarkUnsaved();
        CheckRestored();
        return true;
    }

    /// <summary>
    /// Leader: the snapshot transfer to a follower of <see cref="Ready.SnapshotsWanted"/> has ended. If installed, the
    /// follower has the state up to <paramref name="index"/> and is probed right after it. Otherwise a snapshot is
    /// wanted again after an election timeout. No effect when the follower no longer needs it.
    /// </summary>
    public void SnapshotEnded(NodeId follower, LogIndex index, bool installed)
    {
        if (Role == RaftRole.Leader)
        {
            _leadership.SnapshotEnded(follower, index, installed);
        }
    }

    /// <summary>
    /// Leader: this member needs a snapshot. When this becomes false during a transfer, the member caught up another
    /// way and the transfer may stop.
    /// </summary>
    public bool AwaitsSnapshot(NodeId member) => Role == RaftRole.Leader && _leadership.AwaitsSnapshot(member);

    // ---- Members that lost their log, and voting rights

    /// <summary>
    /// Leader: the member has lost its log. Its acknowledgements no longer count, nor do its answers until it
    /// acknowledges again. Call it on every node, after the last message of the member's previous run and before the
    /// first of its new one.
    /// </summary>
    public void ForgetFollower(NodeId member)
    {
        if (Role == RaftRole.Leader)
        {
            _leadership.Forget(member);
        }
    }

    /// <summary>
    /// Hands the hard state out with the next Ready even if unchanged, because the owner stores more beside it.
    /// </summary>
    public void SaveAgain() => _state.MarkUnsaved();

    /// <summary>
    /// Allows this node to vote: it provably never took part, or <see cref="CanRejoin"/> was true and the hard state is
    /// durable.
    /// </summary>
    public void AllowVoting()
    {
        InvariantException.Require(
            _rejoining is null or { IsRestored: true } || _state.Voting == VotingRight.Amnesiac,
            "a rejoining node votes only after it was restored");
        if (!IsVoting && _state.Voting != VotingRight.Amnesiac)
        {
            _roles.AllowVoting();
        }
    }

    // ---- The Ready. TakeReady opens it, and it stays unchanged until Advance. Meanwhile no append that cuts the log
    // ---- may be stepped; other inputs may, and show in the next Ready.

    /// <summary>
    /// Makes the messages that are due, and ends the ticket of the reads that were registered. True when there is
    /// something to carry out, or a Ready is open.
    /// </summary>
    public bool PrepareReady() => _turns.Prepare();

    /// <summary>
    /// Takes the Ready that is to be carried out. While one is open, returns that one. Call it after
    /// <see cref="PrepareReady"/>.
    /// </summary>
    public ref readonly Ready TakeReady() => ref _turns.Take();

    /// <summary>
    /// Closes the Ready after it was carried out: entries handed to storage, messages handed to the transport,
    /// committed entries applied.
    /// </summary>
    public void Advance() => _turns.Advance();

    // ---- Entries in memory

    /// <summary>
    /// The payload of an entry in memory: any entry above the applied or durable index, and some cached ones below.
    /// </summary>
    public ReadOnlySpan<byte> Payload(LogIndex index, out Term term, out EntryKind kind) =>
        _log.Payload(index, out term, out kind, out _);

    /// <inheritdoc cref="Payload(LogIndex, out Term, out EntryKind)"/>
    public ReadOnlySpan<byte> Payload(LogIndex index, out Term term, out EntryKind kind, out FeatureLevel level) =>
        _log.Payload(index, out term, out kind, out level);

    /// <summary>Appends the entries [first, first + count) to <paramref name="target"/>, in EntryCodec.</summary>
    public void CopyEntries(LogIndex first, int count, ByteBuffer target) => _log.CopyEntries(first, count, target);

    /// <summary>
    /// Copies entries [first, first + count) in EntryCodec. The target has the length that <see cref="EntryBytes"/>
    /// returns.
    /// </summary>
    public void CopyEntries(LogIndex first, int count, Span<byte> target) => _log.CopyEntries(first, count, target);

    /// <summary>Bytes of the entries [first, last] in EntryCodec, all of which are in memory.</summary>
    public long EntryBytes(LogIndex first, LogIndex last) => _log.BytesBetween(first, last);

    /// <summary>
    /// Most bytes of entries in memory for a member that lags. Initially <see cref="RaftLimits.CacheBytesMax"/>.
    /// </summary>
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

    /// <summary>The term of an entry at or above the log's start.</summary>
    public Term TermOf(LogIndex index) => _log.TermAt(index);

    /// <summary>Leader: the highest index that this member has acknowledged; 0 when unknown.</summary>
    public LogIndex MatchIndex(NodeId member) => Role == RaftRole.Leader ? _leadership.MatchIndex(member) : default;

    /// <summary>
    /// The highest commit index that a leader has reported. Above <see cref="CommitIndex"/> while this node lags.
    /// </summary>
    public LogIndex HeardCommit => _following.HeardCommit;

    /// <summary>Leader: this member answered within the last election timeout.</summary>
    public bool IsActive(NodeId member) => Role == RaftRole.Leader && _leadership.IsActive(member);

    /// <summary>
    /// Rejoining: another voter has reported its term. The last report decides from which term on this node takes part
    /// again.
    /// </summary>
    private void RecordTerm(in RaftMessage message)
    {
        if (_rejoining is null)
        {
            return;
        }

        if (_rejoining.TermAnswered(message))
        {
            _roles.SpendVotesThrough(_rejoining.Latest);
            _state.BeginToCount();
        }

        CheckRestored();
    }

    /// <summary>
    /// Checks whether a node that lost its log is restored. An amnesiac member has lost nothing else, so it votes again
    /// at once.
    /// </summary>
    private void CheckRestored()
    {
        _rejoining?.Update(_following.Matched);
        if (_state.Voting == VotingRight.Amnesiac && _rejoining!.IsRestored)
        {
            _roles.AllowVoting();
        }
    }

    private void RequireRestored() =>
        InvariantException.Require(_log.IsRestored, "recovered entries are restored before the first input");
}
