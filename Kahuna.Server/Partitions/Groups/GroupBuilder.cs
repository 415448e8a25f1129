using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// Puts the groups of a loop together: on disk, in memory, and the meta group. Used by the loop at its construction.
/// </summary>
internal sealed class GroupBuilder(LoopOptions options, LoopPorts ports, TurnParts turn, MetaPublisher meta)
{
    private readonly GroupLayout _layout = ports.Layout(options);

    /// <summary>Loads the group at an index.</summary>
    public Group Build(int index)
    {
        GroupId id = _layout.GroupOf(index);
        GroupPlace place = new(index, _layout.PartitionOf(index), options, ports, turn);
        HardState promises = ports.Log.Recovered(id).HardState;
        GroupStart start = id.IsEphemeral
            ? GroupStart.Empty(id, options, ports, promises, place.Changes)
            : GroupStart.Load(id, options, ports, place.Changes);
        MemoryShare memory = new(id, ports, start.Applied);
        Checkpointing checkpointing = new(id, options, ports, start.Applied, memory);
        GroupDurability durability = id.IsEphemeral
            ? InMemory.Of(id, place, promises, checkpointing, meta.Ask)
            : new OnDisk(turn.Log, turn.Peers, checkpointing);
        RequestParts requestParts = new(id, options, start.Applied, memory)
        {
            Clock = turn.Clock,
            LogWatch = turn.LogWatch,
            Replies = turn.Replies,
            Settler = ports.Settler,
        };
        PendingRequests requests = new(requestParts, durability.LeaseRule);
        requests.Replayed(start.Replayed);
        GroupHooks hooks = id.IsMeta ? MetaHooks.Of(place, meta) : GroupHooks.None;
        GroupParts parts = GroupParts.Of(place, start, requests, checkpointing, durability, hooks);
        return new Group(index, start, parts, turn, options);
    }
}

/// <summary>Where a group lives. Immutable; the parts belong to the loop and the node.</summary>
/// <param name="Slot">Its slot on the node (<see cref="GroupLayout"/>).</param>
/// <param name="Partition">The partition that it serves.</param>
/// <param name="Options">How groups work.</param>
/// <param name="Ports">The node around them.</param>
/// <param name="Turn">What the groups of the loop share.</param>
internal sealed record GroupPlace(int Slot, int Partition, LoopOptions Options, LoopPorts Ports, TurnParts Turn)
{
    /// <summary>Keeps the changes of the group's keys; null: they are not kept.</summary>
    public IChangeLog? Changes => Ports.Changes?.Of(Slot);
}

/// <summary>What a group consists of. Immutable; the parts belong to the group.</summary>
/// <param name="Applied">Its state.</param>
/// <param name="Requests">What clients want of it.</param>
/// <param name="Checkpointing">Its side of checkpoints.</param>
/// <param name="Durability">What its promises rest on.</param>
/// <param name="Hooks">What it does besides.</param>
/// <param name="Trace">What it has told the node's trace.</param>
internal sealed record GroupParts(
    AppliedState Applied, PendingRequests Requests, Checkpointing Checkpointing, GroupDurability Durability,
        GroupHooks Hooks, GroupTrace Trace)
{
    /// <summary>The comparison of the members' states.</summary>
    public required StateComparison Comparison { get; init; }

    /// <summary>When leadership is handed over.</summary>
    public required LeaderHandover Handover { get; init; }

    /// <summary>What the checkpoint service asks of it.</summary>
    public required CheckpointRequests Checkpoints { get; init; }

    /// <summary>What others may know of it.</summary>
    public required GroupReport Report { get; init; }

    /// <summary>Carries out what the core asks for.</summary>
    public required ReadyWork Work { get; init; }

    /// <summary>Puts the parts together around those that differ between kinds of groups.</summary>
    public static GroupParts Of(GroupPlace place, GroupStart start, PendingRequests requests,
        Checkpointing checkpointing, GroupDurability durability, GroupHooks hooks)
    {
        (LoopOptions options, LoopPorts ports, TurnParts turn) = (place.Options, place.Ports, place.Turn);
        GroupTrace trace = new(start.Id.IsEphemeral || start.Id.IsMeta ? null : ports.Trace, start.Id);
        StateComparison comparison = new(options.Self, start.Audit, requests, turn.Peers);
        CommittedEntries entries = new(start, requests, comparison, hooks, trace);
        StateInstaller installer = new(checkpointing, durability, requests, comparison, hooks, ports.Memory);
        return new GroupParts(start.Applied, requests, checkpointing, durability, hooks, trace)
        {
            Comparison = comparison,
            Handover = new LeaderHandover(options, place.Partition, requests, start.Applied, comparison),
            Checkpoints = new CheckpointRequests(checkpointing, durability, installer, ports.Checkpoints),
            Report = new GroupReport(place.Slot, options, ports.Leadership),
            Work = new ReadyWork(options.Self, turn, durability, checkpointing, requests, entries),
        };
    }
}

/// <summary>
/// What a group starts with: its state, its core, and what the start has found out. Immutable; the parts belong to the
/// group.
/// </summary>
/// <param name="Id">The group.</param>
/// <param name="Applied">The state with everything that is known to be committed.</param>
/// <param name="Core">The core with the rest of the log.</param>
/// <param name="Audit">What the replayed entries say of the members' states.</param>
internal sealed record GroupStart(GroupId Id, AppliedState Applied, RaftCore Core, StateAudit Audit)
{
    /// <summary>Up to this entry the state is in the store.</summary>
    public LogIndex Stored { get; private init; }

    /// <summary>Commands that were replayed.</summary>
    public int Replayed { get; private init; }

    /// <summary>The log has nothing that follows on the stored state, and begins anew behind it.</summary>
    public bool LogRestarts { get; private init; }

    /// <summary>
    /// The rule that was broken meanwhile, or what of the stored data cannot be used. State and core are empty then,
    /// and are not asked.
    /// </summary>
    public Exception? Error { get; private init; }

    /// <summary>The start of a group whose entries are not stored.</summary>
    /// <param name="id">The group.</param>
    /// <param name="options">How the group works.</param>
    /// <param name="ports">The node's log.</param>
    /// <param name="promises">Term and vote as stored.</param>
    /// <param name="changes">Keeps the changes of its keys.</param>
    public static GroupStart Empty(
        GroupId id, LoopOptions options, LoopPorts ports, in HardState promises, IChangeLog? changes)
    {
        StateMachine state = new(options.StateLimits);
        if (id.IsEphemeral)
        {
            ports.Memory.Track(state);
        }

        RaftCore core = new GroupRecovery(id, options, ports).EmptyCore(promises, VotingRight.Full);
        return new GroupStart(
            id, new AppliedState(state, changes: changes), core, new StateAudit(id, options, ports.Report));
    }

    /// <summary>Loads the stored state and replays the log behind it.</summary>
    /// <exception cref="FeatureLevelException">They have a feature level that this build does not support.</exception>
    public static GroupStart Load(GroupId id, LoopOptions options, LoopPorts ports, IChangeLog? changes)
    {
        try
        {
            GroupRecovery recovery = new(id, options, ports);
            StateMachine loaded = recovery.LoadState();
            AppliedState applied = new(
                loaded, recovery.Applied, recovery.AppliedTerm, recovery.AppliedLevel, changes);
            StateAudit audit = new(id, options, ports.Report);
            EntryApplier applier = new(applied, audit);
            ReplayedCommands commands = new(loaded);
            int replayed = 0;
            RaftCore core = recovery.RecoverLog((kind, level, payload) =>
            {
                CommittedEntry entry = new(recovery.Applied.Next(), kind, level, payload);
                replayed += applier.Apply(entry, in commands, replies: 0, isLeader: false, isRecovered: true);
                changes?.Publish(entry.Index);
            });
            applied.Replace(loaded, recovery.Applied, recovery.AppliedTerm, recovery.AppliedLevel);
            if (id.IsMeta)
            {
                FeatureLevelException.Require(
                    loaded.Meta.FeatureLevel, options.StateLimits, "its records in the meta group");
            }

            return new GroupStart(id, applied, core, audit)
            {
                Stored = recovery.Mark?.Index ?? default,
                Replayed = replayed,
                LogRestarts = recovery.LogRestarts,
            };
        }
        catch (Exception error) when (error is InvariantException or GroupDamagedException)
        {
            return Empty(id, options, ports, ports.Log.Recovered(id).HardState, changes) with { Error = error };
        }
    }
}

/// <summary>
/// Begins an epoch of an ephemeral group on this node: an empty state and an empty log. Owned by one group; not
/// thread-safe.
/// </summary>
internal sealed class EpochStart(
    GroupId group, int partition, LoopOptions options, LoopPorts ports, Checkpointing checkpointing)
{
    /// <summary>
    /// Drops what was, and returns the core of the new epoch, which remembers the old one's terms and votes.
    /// </summary>
    /// <param name="membership">The epoch, and how long leases of the one before may last.</param>
    /// <param name="promises">Terms and votes of this node.</param>
    /// <param name="voting">Whether this node may vote in the epoch.</param>
    public RaftCore Begin(EpochMembership membership, in HardState promises, VotingRight voting)
    {
        StateLimits limits = options.StateLimits.InEpoch(membership.Epoch);
        StateMachine state = new(limits with
        {
            LeasesBeforeMs = new ClusterTime(membership.LeasesBeforeMs),
            SlotsBefore = membership.SlotsBefore,
            Partition = partition,
        });
        ports.Memory.Track(state);
        checkpointing.BeginAnew(state, membership.Epoch);
        RaftCore core = new GroupRecovery(group, options, ports).EmptyCore(promises, voting);
        core.SaveAgain();
        string how = voting == VotingRight.Full ? ", empty" : ", which waits to be restored";
        Epoch epoch = membership.Epoch;
        ports.Report($"{group.Title}: epoch {epoch} begins on this node{how}.");
        return core;
    }
}

/// <summary>What is left of a group's work after the second half of a round.</summary>
[Flags]
internal enum GroupWork : byte
{
    /// <summary>Nothing.</summary>
    None = 0,

    /// <summary>Another round of this turn is due.</summary>
    Round = 1,

    /// <summary>The rest is for the next turn, so that what else waits for the loop comes in between.</summary>
    Turn = 2,

    /// <summary>Pages of lists are to be read when everything else of the turn has left.</summary>
    Pages = 4,

    /// <summary>A turn is due in a few ms, when proposals are held no longer.</summary>
    Later = 8,
}
