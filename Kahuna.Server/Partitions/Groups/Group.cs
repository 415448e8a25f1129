using System.Runtime.InteropServices;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.Meta;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// One Raft group on this node. A round of a turn asks it three things: to take in what has come, to propose what waits
/// (<see cref="Propose"/>), and to carry out the rest (<see cref="Finish"/>). Owned by one loop; not thread-safe but
/// for what says so.
/// </summary>
internal sealed class Group
{
    private readonly LoopOptions _options;
    private readonly TurnParts _turn;
    private readonly GroupStart _start;
    private readonly GroupParts _parts;
    private readonly GroupDurability _durability;
    private readonly GroupReport _report;
    private readonly ViewAge _age;
    private Term _term;

    /// <summary>A group that was loaded; <see cref="Start"/> comes next.</summary>
    /// <param name="index">Its index on the node.</param>
    /// <param name="start">What it starts with.</param>
    /// <param name="parts">What it consists of.</param>
    /// <param name="turn">What it shares with the groups of its loop.</param>
    /// <param name="options">How it works.</param>
    public Group(int index, GroupStart start, GroupParts parts, TurnParts turn, LoopOptions options)
    {
        Id = start.Id;
        Index = index;
        Core = start.Core;
        _options = options;
        _turn = turn;
        _start = start;
        _parts = parts;
        _durability = parts.Durability;
        _report = parts.Report;
        _age = new ViewAge(options, turn.Clock);
    }

    /// <summary>The group.</summary>
    public GroupId Id { get; }

    /// <summary>Its index on the node (<see cref="GroupLayout"/>).</summary>
    public int Index { get; }

    /// <summary>Set once a rule was broken: it takes nothing from then on.</summary>
    public bool Failed { get; private set; }

    /// <summary>
    /// The rule that was broken when it was loaded, or what of its stored data cannot be used: the owner stops it, and
    /// the others go on.
    /// </summary>
    public Exception? LoadError => _start.Error;

    /// <summary>The loop has it on its list of groups with work in this turn.</summary>
    public bool Dirty { get; set; }

    /// <summary>This node leads the group.</summary>
    public bool IsLeader => !Failed && Core.Role == RaftRole.Leader;

    /// <summary>What its messages carry besides.</summary>
    public MessageStamp Stamp => _durability.Stamp;

    /// <summary>No request waits here, and another node leads, where there is another.</summary>
    public bool IsDrained => Failed || (Requests.IsIdle && (!IsLeader || _options.Voters.Count == 1));

    /// <summary>How it stands.</summary>
    public PartitionStatus Status => Failed
        ? new(RaftRole.Follower, NodeId.None, Core.Term, Serving: false, _durability.Epoch)
        : new(Core.Role, Core.Leader, Core.Term, IsServing, _durability.Epoch, Lags: !IsLeader && _report.Lags);

    /// <summary>
    /// Nothing goes in or out: a state is being put in place, or the node does not take part in the epoch.
    /// </summary>
    public bool IsStill => _parts.Checkpointing.IsStill || !_durability.IsTakingPart;

    /// <inheritdoc cref="GroupReport.CommitIndex"/>
    public LogIndex CommitIndex => _report.CommitIndex;

    /// <inheritdoc cref="GroupReport.Metrics"/>
    public PartitionMetrics Metrics => _report.Metrics;

    /// <inheritdoc cref="GroupReport.CanRejoin"/>
    public bool CanRejoin => _report.CanRejoin;

    /// <summary>
    /// For the owner and the group's parts, and for tests while no turn runs. An ephemeral group has another one in
    /// each epoch.
    /// </summary>
    public RaftCore Core { get; private set; }

    /// <summary>What the checkpoint service asks of it; as <see cref="Core"/>.</summary>
    public CheckpointRequests Checkpoints => _parts.Checkpoints;

    /// <summary>When leadership moves to another member; as <see cref="Core"/>.</summary>
    public LeaderHandover Handover => _parts.Handover;

    /// <summary>What clients want of it; as <see cref="Core"/>.</summary>
    public PendingRequests Requests => _parts.Requests;

    /// <summary>Its state; as <see cref="Core"/>.</summary>
    public StateMachine State => _parts.Applied.State;

    /// <summary>Last entry in the state; as <see cref="Core"/>.</summary>
    public LogIndex Applied => _parts.Applied.Index;

    /// <summary>
    /// A follower: its state has everything that its leader has committed. A new leader may not know what is committed
    /// before it has committed an entry of its own term.
    /// </summary>
    private bool HasAllThatIsCommitted =>
        Applied >= Core.HeardCommit
            && Core.HeardCommit >= Core.LogStart
            && Core.TermOf(Core.HeardCommit) == Core.Term;

    private bool IsServing =>
        Core.Role == RaftRole.Leader ? Requests.IsServing : !Core.Leader.IsNone && _durability.IsWhole(Core);

    /// <summary>A promise that was made with this stamp may leave.</summary>
    public bool MayPromise(in MessageStamp stamp) => _durability.MayPromise(stamp);

    /// <summary>The group was loaded, and its loop owns it.</summary>
    public void Start()
    {
        if (_start.LogRestarts)
        {
            _durability.RestartLog(this, Applied, _parts.Applied.Term);
        }

        _parts.Checkpointing.Recovered(_start.Stored);
        _parts.Hooks.Started(this, State);
        _report.CommitIndex = Core.CommitIndex;
        _parts.Trace.StateLoaded(Applied, _parts.Applied.Term, State.Digest);
    }

    // ---- In

    /// <summary>One checked operation of a client. A read keeps the batch held until it is answered.</summary>
    public void Accept(ClientBatch batch, int operation) => Requests.Accept(Core, batch, operation, Failed);

    /// <summary>
    /// A message of a member, or of this node itself. Entries come with an append only; they are read during the call.
    /// </summary>
    public void Step(in RaftMessage message, in MessageStamp stamp, ReadOnlySpan<byte> entries)
    {
        if (message.Kind == RaftMessageKind.Forward)
        {
            Record(entries);
            return;
        }

        if (!_durability.MayTake(message, stamp, Core.Term, out bool returned))
        {
            return;
        }

        if (returned)
        {
            Forget(message.From);
        }

        if (message.Kind == RaftMessageKind.Digest)
        {
            _parts.Comparison.Compare(Core, message.From, message.Index, message.Round);
            return;
        }

        // A node that stops does not take leadership back, nor does one that was paused: for a while it refuses to
        // begin sessions.
        bool takesLeadership = !Requests.IsDraining && !_turn.IsAfterPause;
        if (!IsStill && (takesLeadership || message.Kind != RaftMessageKind.TimeoutNow))
        {
            Core.Step(message, entries);
            _report.LookAtLevel(Core, Id, message.From);
            if (message.Kind == RaftMessageKind.TimeoutNow)
            {
                _parts.Handover.Asked(Core, message.Round);
            }
        }
    }

    /// <summary>The group's log is on stable storage up to this entry.</summary>
    public void Persisted(LogIndex index, Term term)
    {
        Core.Persisted(index, term);
        Requests.Persisted(index);
        _parts.Checkpointing.LogPersisted(index, term, Core.DurableIndex);
    }

    /// <summary>A hard state that stands alone is on stable storage.</summary>
    public void Saved()
    {
        _durability.Saved();
        _parts.Hooks.Saved();
    }

    /// <summary>A frame to this member was lost.</summary>
    public void ReportUnreachable(NodeId peer) => Core.ReportUnreachable(peer);

    /// <summary>The member came back without what it had.</summary>
    public void Forget(NodeId member) => Core.ForgetFollower(member);

    /// <summary>It is certain now that this node breaks no promise by voting.</summary>
    public void AllowVoting()
    {
        if (_durability.AllowVoting())
        {
            Core.AllowVoting();
        }
    }

    /// <summary>The meta group's records have changed.</summary>
    public void Learn(MetaView view)
    {
        Requests.SlotMapVersion = view.SlotMapVersion;
        if (!_durability.Learn(Core, view))
        {
            return;
        }

        // What was is void. This node takes part in the new epoch from empty, with the terms and votes that it
        // remembers.
        Requests.LoseProposed();
        LoseLeadership();
        Core = _durability.BeginEpoch(Core);
        _parts.Comparison.Forget();
        _report.BeginEpoch();
        Requests.BeginEpoch(_durability.Epoch);
        _term = default;
    }

    /// <inheritdoc cref="ViewAge.CaughtUpAt"/>
    public NodeTime? CaughtUpAt => _age.CaughtUpAt;

    /// <summary>The meta group is to record this; without a leader it is lost.</summary>
    public void Record(ReadOnlySpan<byte> command) => _parts.Hooks.Record(this, command);

    /// <summary>Entries for a follower were read from storage.</summary>
    public void Fetched(NodeId follower, LogIndex first, ReadOnlySpan<byte> entries) =>
        _parts.Work.Fetched(this, follower, first, entries);

    /// <summary>A state with this last entry has taken the place of the group's own.</summary>
    public void Installed(LogIndex index, Term term, ulong digest)
    {
        _parts.Trace.StateLoaded(index, term, digest);
        _report.CommitIndex = Core.CommitIndex;
    }

    /// <summary>A tick of the node's clock, the one with this number.</summary>
    public void Tick(ulong number)
    {
        _age.Tick();
        _durability.Tick(Core);
        if (!IsLeader && !Core.Leader.IsNone)
        {
            _report.Follow(Applied < Core.DurableIndex ? Applied : Core.DurableIndex, Core.HeardCommit);
            if (HasAllThatIsCommitted)
            {
                _age.CaughtUp(_parts.Applied, Core.HeardLeaderAt);
            }
        }

        if (IsStill)
        {
            return;
        }

        Core.IsStalled = _turn.IsLogStalled;
        Core.IsReluctant = _turn.IsAfterPause;
        Core.Now = _turn.Clock.Now;
        Core.Tick(number);
        Requests.TickBuffers();
        _parts.Checkpointing.Tick(Core);
        _report.Tick(Core, _parts.Applied, _parts.Checkpointing.Stored, Requests);
        _parts.Hooks.Tick(this);
        _report.CanRejoin = _durability.IsRestored(Core) && _durability.ArePromisesDurable;
        if (_durability.NeedsDiskToLead && Core is { IsStalled: true, Role: RaftRole.Leader, IsTransferring: false })
        {
            // Two healthy disks are a majority: another member leads that can use them.
            _parts.Handover.HandOver(Core, Core.Successor());
        }

        if (Requests.IsServing && Core.Role == RaftRole.Leader)
        {
            // A leader that no majority hears may have been followed by another one already.
            _age.CaughtUp(_parts.Applied, Core.HeardMajorityAt);
            Requests.Tick();
            _parts.Comparison.Tick(Core, _parts.Applied);
            _parts.Handover.Tick(Core);
        }
    }

    /// <summary>
    /// Takes no new operations; hands leadership to the follower with the longest log among those that may lead.
    /// </summary>
    public void Drain()
    {
        Requests.IsDraining = true;
        _parts.Handover.HandOver(Core, Core.Successor());
    }

    /// <summary>A rule is broken: keeps the evidence, answers, and takes nothing from then on.</summary>
    public void Fail()
    {
        Failed = true;
        Requests.Fail();
        _parts.Handover.Stop();
        _parts.Checkpointing.Stop();
        _report.Publish(Status);
    }

    // ---- The turn

    /// <summary>
    /// First half of a round: proposes what waits, hands entries to the log and messages to the peers.
    /// </summary>
    /// <remarks>
    /// <para>
    /// A round has two halves because all groups of a loop share one log batch and one frame per peer. The loop calls
    /// this for each group with work, submits the batch, sends the frames, and only then calls <see cref="Finish"/>. So
    /// one sync and one packet serve all of them, and applying, which takes longest, overlaps with the disk and the
    /// network (docs/adr/0007-turns-on-lent-threads.md).
    /// </para>
    /// <list type="number">
    /// <item>
    /// Reads that are accepted from now on get a new ticket. A ticket is confirmed by a round of heartbeats that begins
    /// after it was given out, and the Ready that is taken below begins one; a later read under the same ticket could
    /// be answered from before its own beginning (docs/adr/0002-raft-core.md, reads).
    /// </item>
    /// <item>
    /// Leadership is looked at before anything is proposed. Between two rounds it may have been lost and won again:
    /// what was queued in the old term is answered, and is not proposed in the new one.
    /// </item>
    /// <item>
    /// Everything that waits is proposed, and then one Ready is taken. All proposals of the round share one append per
    /// follower, because the core makes its messages when the Ready is prepared.
    /// </item>
    /// <item>
    /// Entries go to the log before any message that rests on them goes to a peer. A leader's own append may leave in
    /// parallel with its own disk: it promises nothing. A vote or an acknowledgement does, and waits
    /// (<see cref="PeerMessages.ReleaseThrough"/>).
    /// </item>
    /// </list>
    /// </remarks>
    public void Propose()
    {
        Requests.BeginTurn();
        Core.Now = _turn.Clock.Now;
        Core.IsReluctant = _turn.IsAfterPause;
        if (IsStill)
        {
            _parts.Work.Skip();
            return;
        }

        _parts.Trace.LookAtRole(Core);
        LookAtLeadership();
        Requests.Propose(Core);
        _parts.Work.Begin(this, Core);
    }

    /// <summary>
    /// Second half of a round, after the log and the peers have theirs: applies a slice of what is committed, and
    /// serves what is confirmed.
    /// </summary>
    /// <remarks>
    /// <list type="number">
    /// <item>
    /// The Ready that is carried out here is the one that <see cref="Propose"/> has taken: messages that came in
    /// meanwhile show in the next one. Nothing steps the core between the two halves.
    /// </item>
    /// <item>
    /// What is committed is applied although the own disk may lack it still: a majority of others has it. The stored
    /// state must not get ahead of the own log, which <see cref="Snapshots.Checkpointing.Take"/> sees to.
    /// </item>
    /// <item>
    /// Reads are served after the entries of the round: a round that confirms a read may name an index that is applied
    /// just now.
    /// </item>
    /// <item>
    /// The core hands out a bounded slice of a large backlog. The rest waits for the next turn, which takes in ticks
    /// and messages first; without that, a restored member would answer no heartbeat while it catches up
    /// (docs/adr/0015-answers-that-wait.md).
    /// </item>
    /// <item>
    /// Applying and answering may have made new work for the core. To ask whether there is a Ready also ends the ticket
    /// of reads, so it is asked last.
    /// </item>
    /// </list>
    /// </remarks>
    public GroupWork Finish()
    {
        if (IsStill)
        {
            _report.Publish(Status);
            return GroupWork.None;
        }

        bool wasOpen = _parts.Work.IsOpen;
        bool isMoreCommitted = _parts.Work.End(this, Core);
        if (wasOpen)
        {
            _report.CommitIndex = Core.CommitIndex;
        }

        _parts.Hooks.Publish(State);
        _parts.Applied.Changes?.Announce();
        GroupWork left = Requests.ServeReads() || isMoreCommitted ? GroupWork.Turn : GroupWork.None;
        left |= Requests.HasPages ? GroupWork.Pages : GroupWork.None;
        left |= Requests.HoldsProposals ? GroupWork.Later : GroupWork.None;
        _report.Publish(Status);
        bool isDue = !isMoreCommitted && (Core.PrepareReady() || Requests.IsDue(Core));
        return isDue ? left | GroupWork.Round : left;
    }

    /// <summary>Reads one page of a list. True: there are more to read.</summary>
    public bool ServePage()
    {
        if (IsStill)
        {
            return false;
        }

        Requests.ServePage();
        return Requests.HasPages;
    }

    private void LookAtLeadership()
    {
        if (Core.Role != RaftRole.Leader || Core.Term != _term)
        {
            LoseLeadership();
            _term = Core.Term;
        }
        else if (Core.IsTransferring)
        {
            // What waits to be proposed is dropped.
            _parts.Hooks.LoseProposed();
        }
    }

    private void LoseLeadership()
    {
        _parts.Handover.Reset();
        _parts.Checkpointing.SendNothing();
        _parts.Hooks.LoseProposed();
        Requests.LoseLeadership(Core);
    }
}

/// <summary>
/// What one group has told the node's trace, so that it tells only what is new. Owned by one <see cref="Group"/>; not
/// thread-safe.
/// </summary>
/// <param name="port">The trace; null when nobody checks the group.</param>
/// <param name="group">The group.</param>
internal sealed class GroupTrace(IPartitionTrace? port, GroupId group)
{
    private readonly List<ulong> _digests = [];
    private LogIndex _applied;
    private LogIndex _commit;
    private Term _led;

    /// <summary>After inputs to the core, and before anything of them leaves.</summary>
    public void LookAtRole(RaftCore core)
    {
        if (port is not null && core.Role == RaftRole.Leader && core.Term != _led)
        {
            _led = core.Term;
            port.BecameLeader(group, core.Term, core.LastIndex, core.CommitIndex);
        }
    }

    /// <summary>After the entries of the turn were handed to the log: what they commit is told after them.</summary>
    public void LookAtCommit(RaftCore core)
    {
        if (port is not null && core.CommitIndex > _commit)
        {
            // What is committed and not yet applied is in memory.
            _commit = core.CommitIndex;
            core.Payload(_commit, out Term term, out _);
            port.Committed(group, _commit, term);
        }
    }

    /// <summary>The callers of an entry's writes are about to be answered.</summary>
    public void Acknowledged(LogIndex index, Term term, int writes) => port?.Acknowledged(group, index, term, writes);

    /// <summary>An entry is applied.</summary>
    public void Applied(LogIndex index, ulong digest)
    {
        if (port is not null)
        {
            _applied = index;
            _digests.Add(digest);
        }
    }

    /// <summary>Tells what was applied in this round as a whole.</summary>
    public void EndApply()
    {
        if (_digests.Count > 0)
        {
            LogIndex first = new(_applied.Value + 1 - (ulong)_digests.Count);
            port!.Applied(group, first, CollectionsMarshal.AsSpan(_digests));
            _digests.Clear();
        }
    }

    /// <summary>The state in memory is the one after this entry.</summary>
    public void StateLoaded(LogIndex index, Term term, ulong digest)
    {
        _applied = index;
        _commit = index;
        port?.StateLoaded(group, index, term, digest);
    }
}

/// <summary>Whatever a loop does with a group: a broken rule stops the group, and only it. Owned by the loop.</summary>
internal sealed class GroupGuard(ILeadershipSink leadership)
{
    /// <summary>Does something with a group that has not stopped.</summary>
    public void Do<T>(Group group, Action<Group, T> action, T argument)
    {
        if (!group.Failed)
        {
            Ask(group, action, argument);
        }
    }

    /// <summary>Asks a group for an answer that somebody waits for, also one that has stopped.</summary>
    public void Ask<T>(Group group, Action<Group, T> action, T argument)
    {
        try
        {
            action(group, argument);
        }
        catch (InvariantException error)
        {
            Stop(group, error);
        }
    }

    /// <summary>Gives a client's operation to a group, also to one that has stopped: it answers so.</summary>
    public void Accept(Group group, ClientBatch batch, int operation)
    {
        try
        {
            group.Accept(batch, operation);
        }
        catch (InvariantException error)
        {
            Stop(group, error);
        }
    }

    /// <summary>Gives a message to a group that has not stopped.</summary>
    public void Step(Group group, in RaftMessage message, in MessageStamp stamp, ReadOnlySpan<byte> entries)
    {
        try
        {
            if (!group.Failed)
            {
                group.Step(message, stamp, entries);
            }
        }
        catch (InvariantException error)
        {
            Stop(group, error);
        }
    }

    /// <summary>Starts a group. One that could not be loaded takes nothing from the start.</summary>
    public void Start(Group group)
    {
        if (group.LoadError is { } error)
        {
            Stop(group, error);
            return;
        }

        group.Start();
    }

    private void Stop(Group group, Exception error)
    {
        group.Fail();
        leadership.PartitionFailed(group.Index, error);
    }
}
