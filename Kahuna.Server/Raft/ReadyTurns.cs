using System.Runtime.InteropServices;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Raft;

/// <summary>
/// Opens and closes <i>Readys</i>. <see cref="Take"/> freezes what has gathered as the content of one, until
/// <see cref="Advance"/> closes it. Owned by one core; not thread-safe.
/// </summary>
internal sealed class ReadyTurns(RoleState state, EntryLog log, RoleParts parts)
{
    private Ready _ready;

    /// <summary>A Ready was taken, and was not carried out yet.</summary>
    public bool IsOpen { get; private set; }

    /// <summary>Makes the messages that are due. True when there is something to carry out.</summary>
    public bool Prepare()
    {
        if (IsOpen)
        {
            return true;
        }

        MakeMessages();
        return parts.Outbox.Messages.HasGathered || parts.Leadership.ReadStates.HasGathered
            || parts.Leadership.Fetches.HasGathered || parts.Leadership.SnapshotsWanted.HasGathered
            || state.PromisesUnsaved || log.LastIndex > log.HandedOutIndex || log.CommitIndex > log.AppliedIndex;
    }

    /// <summary>Takes what has gathered, or, when a Ready is open, that one again.</summary>
    public ref readonly Ready Take()
    {
        if (!IsOpen)
        {
            MakeMessages();
            bool hasEntries = log.LastIndex > log.HandedOutIndex;
            _ready = new Ready(parts)
            {
                HardState = new HardState(state.Term, state.Vote, log.CommitIndex),
                PromisesChanged = state.PromisesUnsaved,
                HardStateChanged = state.PromisesUnsaved || (hasEntries && state.CommitUnsaved(log.CommitIndex)),
                Unpersisted = (log.HandedOutIndex.Next(), log.LastIndex),
                Committed = (log.AppliedIndex.Next(), log.ApplicableIndex),
            };
            log.OpenThrough = log.LastIndex;
            IsOpen = true;
        }

        return ref _ready;
    }

    /// <summary>The open Ready has been carried out.</summary>
    public void Advance()
    {
        if (!IsOpen)
        {
            return;
        }

        if (_ready.HardStateChanged)
        {
            state.MarkSaved(_ready.HardState);
        }

        if (_ready.Unpersisted.First <= _ready.Unpersisted.Last)
        {
            log.MarkHandedOut(_ready.Unpersisted.First, _ready.Unpersisted.Last);
        }

        if (_ready.Committed.First <= _ready.Committed.Last)
        {
            log.MarkApplied(_ready.Committed.First, _ready.Committed.Last);
        }

        parts.Outbox.Messages.CloseReady();
        parts.Leadership.ReadStates.CloseReady();
        parts.Leadership.Fetches.CloseReady();
        parts.Leadership.SnapshotsWanted.CloseReady();
        log.OpenThrough = default;
        IsOpen = false;
        log.Trim(state.Role == RaftRole.Leader ? parts.Leadership.HeldByActive : log.LastIndex);
    }

    private void MakeMessages()
    {
        parts.Following.Prepare(parts.Outbox);
        if (state.Role == RaftRole.Leader)
        {
            parts.Leadership.Prepare(parts.Outbox);
        }
    }
}

/// <summary>
/// The work that a core asks its owner to carry out. <see cref="RaftCore.TakeReady"/> takes it, and it stays unchanged
/// until <see cref="RaftCore.Advance"/>: inputs meanwhile show in the next one. Owned by one core; a value.
/// </summary>
internal readonly struct Ready
{
    private readonly List<OutgoingMessage> _messages;
    private readonly List<ReadState> _readStates;
    private readonly List<LogFetch> _fetches;
    private readonly List<NodeId> _snapshotsWanted;

    public Ready(RoleParts parts)
    {
        _messages = parts.Outbox.Messages.OpenReady();
        _readStates = parts.Leadership.ReadStates.OpenReady();
        _fetches = parts.Leadership.Fetches.OpenReady();
        _snapshotsWanted = parts.Leadership.SnapshotsWanted.OpenReady();
    }

    /// <summary>Term, vote and commit index.</summary>
    public HardState HardState { get; init; }

    /// <summary>
    /// The part of <see cref="HardStateChanged"/> that counts where entries are not stored, and no commit index is
    /// needed after a restart: term or vote changed, or the owner has more to store with them.
    /// </summary>
    public bool PromisesChanged { get; init; }

    /// <summary>
    /// The hard state must be persisted with this Ready's entries (term or vote changed, or entries are persisted and
    /// commit moved).
    /// </summary>
    public bool HardStateChanged { get; init; }

    /// <summary>
    /// Entries to append to storage, [first, last]; empty when first is greater than last. Storage drops what it has at
    /// or above first.
    /// </summary>
    public (LogIndex First, LogIndex Last) Unpersisted { get; init; }

    /// <summary>
    /// Entries to apply, [first, last]; empty when first is greater than last. What exceeds
    /// <see cref="RaftLimits.ApplyBytesMax"/> is left for the next Ready. A leader's committed entry may not yet be
    /// durable here: a majority of others has it.
    /// </summary>
    public (LogIndex First, LogIndex Last) Committed { get; init; }

    /// <summary>Messages to send: at once, or when everything before them is durable.</summary>
    public ReadOnlySpan<OutgoingMessage> Messages => CollectionsMarshal.AsSpan(_messages);

    /// <summary>Reads that a round has confirmed.</summary>
    public ReadOnlySpan<ReadState> ReadStates => CollectionsMarshal.AsSpan(_readStates);

    /// <summary>Entries to read from storage for followers.</summary>
    public ReadOnlySpan<LogFetch> Fetches => CollectionsMarshal.AsSpan(_fetches);

    /// <summary>
    /// Leader: followers that need a snapshot now; each is told once, until <see cref="RaftCore.SnapshotEnded"/>.
    /// </summary>
    public ReadOnlySpan<NodeId> SnapshotsWanted => CollectionsMarshal.AsSpan(_snapshotsWanted);
}

/// <summary>A message of a <i>Ready</i>, and when it may be sent.</summary>
/// <param name="Message">The message. If addressed to this node itself: pass it to Step once the condition
/// holds.</param>
/// <param name="AfterDurable">True: send it only after everything that this Ready and earlier ones persist is on stable
/// storage.</param>
internal readonly record struct OutgoingMessage(RaftMessage Message, bool AfterDurable);

/// <summary>
/// A confirmed read: reads registered under <paramref name="Ticket"/> or an earlier one may be served once
/// <paramref name="Index"/> is applied.
/// </summary>
internal readonly record struct ReadState(ulong Ticket, LogIndex Index);

/// <summary>
/// Entries that a follower needs and memory no longer holds. Read them from storage and pass them to
/// <see cref="RaftCore.CompleteFetch"/>.
/// </summary>
internal readonly record struct LogFetch(NodeId Follower, LogIndex First, int BytesMax);

/// <summary>
/// Role, term, vote and leader of a node, with the rules that hold in every role. Shared by the parts of one core; not
/// thread-safe.
/// </summary>
internal sealed class RoleState(HardState start, VotingRight voting, VotePromise promise)
{
    private Term _savedTerm = start.Term;
    private NodeId _savedVote = start.Vote;
    private LogIndex _savedCommit = start.Commit;
    private NodeId _leaderOfTerm;
    private bool _restartUnsaved;

    public RaftRole Role { get; set; }

    public Term Term { get; private set; } = start.Term;

    public NodeId Vote { get; private set; } = start.Vote;

    public NodeId Leader { get; private set; }

    public VotingRight Voting { get; private set; } = voting;

    /// <summary>See <see cref="RaftCore.Now"/>.</summary>
    public NodeTime Now => Promise.Now;

    /// <summary>
    /// About when the messages that arrive now were sent; 0 while that is not known, because this node was paused a
    /// short time ago, and they may have waited here as long as the pause lasted.
    /// </summary>
    public NodeTime HeardNow => IsReluctant ? default : Now;

    /// <summary>See <see cref="RaftCore.HeardLeaderAt"/>.</summary>
    public NodeTime HeardLeaderAt { get; private set; }

    /// <summary>What this node has promised to its leader.</summary>
    public VotePromise Promise { get; } = promise;

    /// <summary>See <see cref="RaftCore.IsReluctant"/>.</summary>
    public bool IsReluctant { get; set; }

    /// <summary>
    /// The log has waited for its disk for an election timeout. This node's votes would not get out, so it neither
    /// campaigns nor grants pre-votes. Cleared when the disk works again.
    /// </summary>
    public bool IsStalled { get; set; }

    /// <summary>This node may vote and campaign.</summary>
    public bool IsVoting => Voting == VotingRight.Full;

    /// <summary>
    /// This node's acknowledgements may be counted: it has forgotten no promise of a term later than its own.
    /// </summary>
    public bool IsCounted { get; private set; } = voting == VotingRight.Full;

    /// <summary>Term or vote differ from what was last handed out, or a snapshot has replaced the log since.</summary>
    public bool PromisesUnsaved => _restartUnsaved || Term != _savedTerm || Vote != _savedVote;

    /// <summary>Enters a later term, without a vote and without a known leader.</summary>
    public void EnterTerm(Term term)
    {
        InvariantException.Require(term > Term, "terms only grow");
        Term = term;
        Vote = NodeId.None;
        Leader = NodeId.None;
        _leaderOfTerm = NodeId.None;
    }

    /// <summary>
    /// This node may vote for the candidate: it has voting rights, and in this term it has voted for the candidate, or
    /// for none and knows no leader.
    /// </summary>
    public bool CanVoteFor(NodeId candidate) =>
        IsVoting && (Vote == candidate || (Vote.IsNone && _leaderOfTerm.IsNone));

    /// <summary>
    /// This node's acknowledgements count from now on: no earlier term can hold a forgotten promise that still matters.
    /// </summary>
    public void BeginToCount() => IsCounted = true;

    public void AllowVoting()
    {
        Voting = VotingRight.Full;
        IsCounted = true;
    }

    public void GiveVote(NodeId candidate)
    {
        InvariantException.Require(Vote.IsNone || Vote == candidate, "one vote per term");
        Vote = candidate;
    }

    public void FollowLeader(NodeId leader)
    {
        InvariantException.Require(_leaderOfTerm.IsNone || _leaderOfTerm == leader, "one leader per term");
        _leaderOfTerm = leader;
        Leader = leader;
    }

    /// <summary>
    /// A heartbeat of the leader has come. What it says was true when a majority last answered its sender, this long
    /// ago: a leader that was paused does not know at once that it was replaced.
    /// </summary>
    public void HearLeader(long ageMs) => HeardLeaderAt = NodeTime.Max(HeardLeaderAt, HeardNow - ageMs);

    /// <summary>Forgets the leader. It may still be alive, but this node no longer relies on it.</summary>
    public void ForgetLeader() => Leader = NodeId.None;

    public bool CommitUnsaved(LogIndex commit) => commit != _savedCommit;

    /// <summary>
    /// Hands the hard state out again: a snapshot replaced the log, or the owner has more to store beside it.
    /// </summary>
    public void MarkUnsaved() => _restartUnsaved = true;

    public void MarkSaved(in HardState state)
    {
        _restartUnsaved = false;
        _savedTerm = state.Term;
        _savedVote = state.Vote;
        _savedCommit = state.Commit;
    }
}

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

/// <summary>
/// A double buffer for one kind of output. Items gather until a Ready opens and freezes them; new items then gather in
/// the second list until the Ready is carried out. Reuses both lists. Owned by one core; not thread-safe.
/// </summary>
internal sealed class DoubleBuffer<T>
{
    private List<T> _gathering = new(16);
    private List<T> _open = new(16);

    public bool HasGathered => _gathering.Count > 0;

    public void Add(T item) => _gathering.Add(item);

    public void RemoveGathered(Predicate<T> match) => _gathering.RemoveAll(match);

    /// <summary>Swaps the lists: the gathered items become the content of the Ready, which is returned.</summary>
    public List<T> OpenReady()
    {
        (_open, _gathering) = (_gathering, _open);
        return _open;
    }

    /// <summary>Clears the content of the Ready, which has been carried out.</summary>
    public void CloseReady() => _open.Clear();
}
