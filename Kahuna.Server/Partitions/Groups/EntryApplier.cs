using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// The one way from an entry to the state: leaders, followers and a restart all go through it. Owned by one group; not
/// thread-safe.
/// </summary>
internal sealed class EntryApplier(AppliedState applied, StateAudit audit)
{
    /// <summary>Applies an entry. Returns how many commands it had.</summary>
    /// <param name="entry">The entry.</param>
    /// <param name="commands">Takes its commands.</param>
    /// <param name="replies">How many callers wait for it: none, or one for each command.</param>
    /// <param name="isLeader">This node leads: after a mark it takes the answers of the members.</param>
    /// <param name="isRecovered">The log had the entry when the node started.</param>
    public int Apply<TCommands>(in CommittedEntry entry, scoped ref readonly TCommands commands, int replies,
        bool isLeader, bool isRecovered)
        where TCommands : struct, ICommandSink
    {
        switch (entry.Kind)
        {
            case EntryKind.Check:
                ApplyCheck(entry, isLeader, isRecovered);
                return 0;
            case EntryKind.Commands:
                return ApplyCommands(in entry, in commands, replies);
            default:
                return 0;
        }
    }

    private int ApplyCommands<TCommands>(in CommittedEntry entry, scoped ref readonly TCommands commands,
        int replies)
        where TCommands : struct, ICommandSink
    {
        bool decodes = CommandEntry.TryReadHeader(entry.Payload, out ClusterTime time, out int count,
            out ReadOnlySpan<byte> items);
        InvariantException.Require(decodes, "a committed entry decodes");
        InvariantException.Require(replies == 0 || replies == count, "every command of an awaited entry has one reply");
        StateMachine state = applied.State;
        state.BeginEntry(entry.Index, time, entry.Level);
        for (int i = 0; i < count; i++)
        {
            if (i % Prefetcher.CommandsMax == 0)
            {
                CommandsAhead.OfEntry(state.Ahead, items, count - i);
            }

            decodes = CommandEntry.TryReadItem(ref items, out ReadOnlySpan<byte> bytes);
            decodes &= Command.TryRead(bytes, out Command command);
            InvariantException.Require(decodes, "a committed command decodes");
            commands.Apply(command, state.Ahead.HashOf(i % Prefetcher.CommandsMax));
        }

        InvariantException.Require(items.IsEmpty, "a committed entry has nothing behind its last command");
        return count;
    }

    private void ApplyCheck(in CommittedEntry entry, bool isLeader, bool isRecovered)
    {
        bool decodes = CheckEntry.TryRead(entry.Payload, out CheckEntry check);
        InvariantException.Require(decodes, "a committed check decodes");
        applied.State.BeginEntry(entry.Index, check.Time, entry.Level);
        if (check.Kind == CheckKind.Mark)
        {
            audit.Mark(entry.Index, applied.State.Digest, isLeader);
        }
        else
        {
            audit.Judge(check, entry.Index, isRecovered);
        }
    }
}

/// <summary>
/// Carries out what a group's core asks for, in two halves: <see cref="Begin"/> before the log and the peers get
/// theirs, and <see cref="End"/> after that. Owned by one group; not thread-safe.
/// </summary>
internal sealed class ReadyWork(NodeId self, TurnParts turn, GroupDurability durability, Checkpointing checkpointing,
    PendingRequests requests, CommittedEntries entries)
{
    /// <summary>A Ready is taken and not carried out yet.</summary>
    public bool IsOpen { get; private set; }

    /// <summary>
    /// First half: entries and hard state to the log, messages to the peers, what followers lack asked for.
    /// </summary>
    public void Begin(Group group, RaftCore core)
    {
        IsOpen = core.PrepareReady();
        if (!IsOpen)
        {
            return;
        }

        ref readonly Ready ready = ref core.TakeReady();
        InvariantException.Require(ready.Committed.Last <= ready.HardState.Commit, "only what is committed is applied");
        durability.Persist(group, core, ready);
        foreach (ref readonly OutgoingMessage outgoing in ready.Messages)
        {
            if (outgoing.AfterDurable)
            {
                durability.SendPromise(group, outgoing.Message);
            }
            else if (outgoing.Message.To != self)
            {
                turn.Peers.Send(group, outgoing.Message, core);
            }
        }

        foreach (ref readonly LogFetch fetch in ready.Fetches)
        {
            turn.Log.Fetch(group.Id, fetch);
        }

        foreach (NodeId follower in ready.SnapshotsWanted)
        {
            checkpointing.Send(follower, core.Term, durability.Epoch);
        }
    }

    /// <summary>
    /// Second half: applies a slice of what is committed and confirms reads. True when more is committed than the slice
    /// took.
    /// </summary>
    public bool End(Group group, RaftCore core)
    {
        if (!IsOpen)
        {
            return false;
        }

        IsOpen = false;
        ref readonly Ready ready = ref core.TakeReady();
        (LogIndex first, LogIndex last) = ready.Committed;
        bool isMoreCommitted = last < ready.HardState.Commit;
        entries.Apply(group, first, last);
        foreach (ref readonly ReadState state in ready.ReadStates)
        {
            requests.Confirm(state);
        }

        core.Advance();
        durability.CarriedOut(core);
        return isMoreCommitted;
    }

    /// <summary>Entries for a follower were read from storage.</summary>
    public void Fetched(Group group, NodeId follower, LogIndex first, ReadOnlySpan<byte> entries)
    {
        if (group.Core.CompleteFetch(follower, first, entries, out RaftMessage append))
        {
            turn.Peers.Send(group, append, entries);
        }
    }

    /// <summary>The group stands still: nothing is in hand.</summary>
    public void Skip() => IsOpen = false;
}

/// <summary>
/// A group that is told when a batch is on stable storage: its log up to an entry, or, without an entry, a hard state.
/// Owned by a <see cref="LogBatch"/>.
/// </summary>
internal struct Confirmation(Group group, LogIndex index, Term term)
{
    /// <summary>The batch; 0 until it is submitted.</summary>
    public ulong Batch;

    public readonly Group Group = group;
    public readonly LogIndex Index = index;
    public readonly Term Term = term;

    /// <summary>No entry is named: a hard state that stands alone was stored.</summary>
    public readonly bool IsHardState => Term.Value == 0;
}

/// <summary>What the groups of a loop share within a turn. Immutable; the parts belong to the loop.</summary>
/// <param name="Clock">The turn's time.</param>
/// <param name="LogWatch">How the node's log does.</param>
/// <param name="Log">What goes to the log.</param>
/// <param name="Peers">What goes to the peers.</param>
/// <param name="Replies">What goes to the clients.</param>
internal sealed record TurnParts(TurnClock Clock, LogWatch LogWatch, LogBatch Log, PeerMessages Peers,
    ReplyFrames Replies)
{
    /// <inheritdoc cref="TurnClock.IsAfterPause"/>
    public bool IsAfterPause => Clock.IsAfterPause;

    /// <inheritdoc cref="LogWatch.IsStalled"/>
    public bool IsLogStalled => LogWatch.IsStalled;
}

/// <summary>
/// Applies what a turn has found to be committed, and has the callers of this node's own writes answered. Owned by one
/// group; not thread-safe.
/// </summary>
internal sealed class CommittedEntries
{
    private readonly AppliedState _applied;
    private readonly PendingRequests _requests;
    private readonly StateComparison _comparison;
    private readonly GroupHooks _hooks;
    private readonly GroupTrace _trace;
    private readonly EntryApplier _applier;
    private readonly LogIndex _recovered;

    public CommittedEntries(GroupStart start, PendingRequests requests, StateComparison comparison, GroupHooks hooks,
        GroupTrace trace)
    {
        _applied = start.Applied;
        _requests = requests;
        _comparison = comparison;
        _hooks = hooks;
        _trace = trace;
        _applier = new EntryApplier(start.Applied, start.Audit);
        _recovered = start.Core.LastIndex;
    }

    /// <summary>Applies entries [first, last].</summary>
    public void Apply(Group group, LogIndex first, LogIndex last)
    {
        RaftCore core = group.Core;
        _trace.LookAtCommit(core);
        _requests.BeginApply(core.CommitIndex);
        for (LogIndex index = first; index <= last; index = index.Next())
        {
            InvariantException.Require(index == _applied.Index.Next(), "entries are applied once and in order");
            ReadOnlySpan<byte> payload = core.Payload(
                index, out Term term, out EntryKind kind, out FeatureLevel level);
            Apply(group, core, new CommittedEntry(index, kind, level, payload), term);
        }

        _trace.EndApply();
    }

    private void Apply(Group group, RaftCore core, in CommittedEntry entry, Term term)
    {
        int replies = _requests.Committed(core, entry.Index, term);
        if (replies > 0)
        {
            _trace.Acknowledged(entry.Index, term, replies);
        }

        // What the log had at the start was replayed only as far as it was known to be committed; the rest comes here.
        CommittedCommands commands = new(_requests.Commands, core, replies > 0);
        bool isRecovered = entry.Index <= _recovered;
        int count = _applier.Apply(entry, in commands, replies, isLeader: core.Role == RaftRole.Leader, isRecovered);
        if (count > 0)
        {
            _hooks.Applied(entry.Payload[CommandEntry.HeaderBytes..]);
        }

        _comparison.Applied(group, core, entry);
        _applied.Advance(entry.Index, term, entry.Level);
        _trace.Applied(entry.Index, _applied.State.Digest);
        if (!_requests.IsServing && core.Role == RaftRole.Leader && term == core.Term)
        {
            _requests.BeginServing();
            _comparison.BeginServing();
        }
    }
}

/// <summary>One committed entry. Valid as long as the bytes it was read from.</summary>
internal readonly ref struct CommittedEntry(
    LogIndex index, EntryKind kind, FeatureLevel level, ReadOnlySpan<byte> payload)
{
    /// <summary>Its place in the log.</summary>
    public LogIndex Index { get; } = index;

    /// <summary>What its payload is.</summary>
    public EntryKind Kind { get; } = kind;

    /// <summary>The cluster's feature level when it was proposed.</summary>
    public FeatureLevel Level { get; } = level;

    /// <summary>
    /// Commands (<see cref="Requests.CommandEntry"/>), or a check (<see cref="Snapshots.CheckEntry"/>).
    /// </summary>
    public ReadOnlySpan<byte> Payload { get; } = payload;
}

/// <summary>
/// The commands of an entry that is committed in a turn; their callers get answers where they wait here. A value.
/// </summary>
internal readonly struct CommittedCommands(AppliedCommands commands, RaftCore core, bool areAwaited) : ICommandSink
{
    public void Apply(scoped in Command command, KnownHash known) =>
        commands.Apply(core, command, known, areAwaited);
}

/// <summary>The commands of an entry that a start replays: nobody waits for them. A value.</summary>
internal readonly struct ReplayedCommands(StateMachine state) : ICommandSink
{
    public void Apply(scoped in Command command, KnownHash known) => state.Apply(command, null, known);
}

/// <summary>
/// Takes the commands of a committed entry, one after the other. Implemented by structs, so that a call costs no more
/// than one of a method that is known.
/// </summary>
internal interface ICommandSink
{
    /// <summary>Applies one command.</summary>
    /// <param name="command">The command.</param>
    /// <param name="known">The hash of its key, where it is known.</param>
    void Apply(scoped in Command command, KnownHash known);
}

/// <summary>
/// A group's part in the comparison of its members' states: proposes marks and verdicts, and tells the own digest
/// (docs/adr/0018-replicas-compare-digests.md). A mark also stamps the cluster's time. Owned by one group; not
/// thread-safe.
/// </summary>
internal sealed class StateComparison(NodeId self, StateAudit audit, PendingRequests requests, PeerMessages peers)
{
    /// <summary>This node leads and serves.</summary>
    public void BeginServing() => audit.BeginServing(requests.ClusterNow);

    /// <summary>The state was replaced, or is void.</summary>
    public void Forget() => audit.Forget();

    /// <summary>A tick of a serving leader: proposes a mark when one is due.</summary>
    public void Tick(RaftCore core, AppliedState applied)
    {
        ClusterTime clusterNow = requests.ClusterNow;
        if (audit.IsDue(clusterNow, applied.Index, applied.HasDeadlines) && TryMark(core))
        {
            audit.Asked(clusterNow);
        }
    }

    /// <summary>Proposes a mark, which stamps the cluster's time. False when nothing may be proposed now.</summary>
    public bool TryMark(RaftCore core) =>
        TryPropose(core, new CheckEntry(requests.ClusterNow, CheckKind.Mark, default, 0));

    /// <summary>A member, or this node, has told the digest of its state at a mark.</summary>
    public void Compare(RaftCore core, NodeId member, LogIndex index, ulong digest)
    {
        if (core.Role == RaftRole.Leader && requests.IsServing
            && audit.Answered(member, index, digest, requests.ClusterNow) is { } verdict)
        {
            TryPropose(core, verdict);
        }
    }

    /// <summary>An entry is applied. At a mark the leader compares, and the others tell it their digest.</summary>
    public void Applied(Group group, RaftCore core, in CommittedEntry entry)
    {
        if (entry.Kind != EntryKind.Check || audit.Marked != entry.Index)
        {
            return;
        }

        if (core.Role == RaftRole.Leader)
        {
            Compare(core, self, audit.Marked, audit.Digest);
        }
        else if (!core.Leader.IsNone)
        {
            RaftMessage told = new()
            {
                Kind = RaftMessageKind.Digest,
                From = self,
                To = core.Leader,
                Index = audit.Marked,
                Round = audit.Digest
            };
            peers.Send(group, told, []);
        }
    }

    private static bool TryPropose(RaftCore core, in CheckEntry check)
    {
        Span<byte> payload = stackalloc byte[CheckEntry.Bytes];
        check.Write(payload);
        return core.TryPropose(EntryKind.Check, payload, out _);
    }
}
