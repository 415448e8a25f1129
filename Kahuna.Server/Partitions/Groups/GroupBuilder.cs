using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// Puts the groups of a loop together: on disk, in memory, and the meta group. Used by the loop at its construction.
/// </summary>
internal sealed class GroupBuilder(LoopOptions options, LoopPorts ports, TurnParts turn, MetaPublisher meta)
{
    private readonly GroupLayout _layout = ports.Layout(options);

    /// <summary>Loads the group in a slot.</summary>
    public Group Build(int slot)
    {
        GroupId id = _layout.GroupOf(slot);
        HardState promises = ports.Log.Recovered(id).HardState;
        GroupStart start = id.IsEphemeral
            ? GroupStart.Empty(id, options, ports, promises) : GroupStart.Load(id, options, ports);
        AppliedState applied = start.Applied;
        MemoryShare memory = new(id, ports, applied);
        Checkpointing checkpointing = new(id, options, ports, applied, memory);
        EpochMembership? membership = id.IsEphemeral
            ? new(id, options, EpochMembership.JoinedIn(promises), meta.Ask) : null;
        GroupDurability durability = membership is null
            ? new OnDisk(turn.Log, turn.Peers, checkpointing)
            : new InMemory(membership, new EpochStart(id, options, ports, checkpointing), turn.Log, turn.Peers);
        RequestParts requestParts = new(id, options, applied, memory)
        {
            Clock = turn.Clock,
            LogWatch = turn.LogWatch,
            Replies = turn.Replies
        };
        PendingRequests requests = new(requestParts, membership is null ? null : membership.MayLease);
        requests.Replayed(start.Replayed);
        GroupHooks hooks = id.IsMeta
            ? new MetaHooks(options.Self, new NodeRegistration(options, ports, meta), turn.Log, turn.Peers)
            : GroupHooks.None;
        GroupTrace trace = new(id.IsEphemeral || id.IsMeta ? null : ports.Trace, id);
        StateComparison comparison = new(options.Self, start.Audit, requests, turn.Peers);
        CommittedEntries entries = new(start, requests, comparison, hooks, trace);
        StateInstaller installer = new(checkpointing, durability, requests, comparison, hooks, ports.Memory);
        GroupParts parts = new(applied, requests, checkpointing, durability, hooks, trace)
        {
            Comparison = comparison,
            Handover = new LeaderHandover(options, _layout.PartitionOf(slot), requests, applied, comparison),
            Checkpoints = new CheckpointRequests(checkpointing, durability, installer, ports.Checkpoints),
            Report = new GroupReport(slot, options, ports.Leadership),
            Work = new ReadyWork(options.Self, turn, durability, checkpointing, requests, entries),
        };
        return new Group(slot, start, parts, turn, options);
    }
}
