using System.Runtime.InteropServices;
using System.Text;
using Kahuna.Client;
using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Meta;
using Kahuna.Server.State.Slots;
using Kahuna.Tests.Partitions;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;
using Kahuna.Tests.Simulation.Workload;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.Simulation.Faults;

/// <summary>
/// Moves one empty slot between partitions, once or several times, whatever else happens to the cluster: both groups of
/// the partition release it, the meta group records the new owner, and that one adopts it. Each step is asked for again
/// until a node has applied it. Writers of the slot's keys begin when the last move is recorded, and not with the
/// release before it: that one is gone when the ephemeral group begins a new epoch, so that the keys were written where
/// they were and moved with the slot, which has to be empty. Owned by one run.
/// </summary>
internal sealed class SlotMover(SimCluster cluster)
{
    /// <summary>The names of the keys that are written there begin with it.</summary>
    private const string Prefix = "moved/k";

    private const int KeysMax = 6;
    private const double Writers = 0.3;
    private const double Readers = 0.03;
    private const long StepNs = 200_000_000;

    private readonly SimRandom _random = new SimRandom(cluster.Config.Seed).Fork(28);
    private readonly Dictionary<ulong, int> _asked = [];
    private readonly List<(KahunaClient Client, ulong Version)> _watched = [];
    private readonly List<Probe> _probes = [];
    private readonly Dictionary<int, ulong> _adopted = [];
    private int _left = cluster.Config.SlotMoves;
    private int _target;
    private ulong _version;
    private Epoch _epoch;
    private int _keys;

    /// <summary>The slot that moves.</summary>
    public static int Slot { get; } = KeyRouting.Slot("moved/k"u8);

    /// <summary>Moves that are complete.</summary>
    public int Moves { get; private set; }

    /// <summary>The last move is recorded: keys of the slot may be written.</summary>
    public bool MayWrite { get; private set; }

    /// <summary>The moves have come to their end, and every node may serve the slot's keys.</summary>
    public bool IsOver => _left == 0;

    /// <summary>The key is of the slot.</summary>
    public bool Concerns(string key) => KeyRouting.Slot(Encoding.UTF8.GetBytes(key)) == Slot;

    /// <summary>The client must never go back to an older map.</summary>
    public void Watch(KahunaClient client) => _watched.Add((client, 0));

    public void Start() => cluster.Scheduler.After(StepNs * _random.Between(5, 75), Step);

    /// <summary>A key of the slot for some callers; null for the others.</summary>
    public string? TryTake(SimRandom random) =>
        // Each is used a few times only, so that its history stays short enough to be checked.
        random.Chance(MayWrite ? Writers : Readers)
            ? $"{Prefix}{Math.Max(0, (_keys++ / 60) - random.Next(KeysMax))}"
            : null;

    /// <summary>What a caller may do with a key: before it may write one of the slot, it reads it.</summary>
    public CallKind Allowed(string key, CallKind kind) =>
        MayWrite || kind is CallKind.Get or CallKind.Exists || !Concerns(key) ? kind : CallKind.Get;

    /// <summary>The partition that has the slot, as far as any node knows.</summary>
    public int Partition => Map.PartitionOf("moved/k"u8);

    private SlotMap Map => cluster.Nodes.Select(static node => node.Loops?.Meta.Slots).OfType<SlotMap>()
        .MaxBy(static map => map.Version) ?? SlotMap.Initial(cluster.Config.Groups);

    private void Step()
    {
        Look();
        if (cluster.LoadEnds || IsOver)
        {
            cluster.Scheduler.After(StepNs, Look);
            return;
        }

        cluster.Scheduler.After(StepNs, Step);
        SlotMap map = Map;
        if (_version == 0)
        {
            _version = map.Version;
            _target = (map[Slot] + 1 + _random.Next(cluster.Config.Groups - 1)) % cluster.Config.Groups;
        }

        if (map.Version > _version)
        {
            MayWrite |= _left == 1;
            Adopt(map);
        }
        else if (Release(map[Slot]))
        {
            _asked[_version] = _target;
            Ask(new MetaCommand(CommandKind.MoveSlots)
            {
                MapVersion = _version,
                Group = GroupId.Of(map[Slot], isEphemeral: true),
                Epoch = _epoch,
                Number = (ulong)_target,
                Slots = [new SlotRange((ushort)Slot, (ushort)Slot, (ushort)_target)],
            });
        }
    }

    /// <summary>True when both groups of the partition have released the slot in the epoch that is noted.</summary>
    private bool Release(int partition)
    {
        bool isDone = true;
        foreach (bool isEphemeral in new[] { false, true })
        {
            int group = cluster.Config.Layout.IndexOf(partition, isEphemeral);
            List<Group> members = Members(group);
            Epoch epoch = members.Count == 0 ? Epoch.None : members.Max(static member => member.Status.Epoch);
            bool isReleased = members.Exists(
                member => member.Status.Epoch == epoch && member.State.Slots.ReleasedIn(Slot) >= _version);
            if (!isReleased)
            {
                Propose(group, CommandKind.ReleaseSlots, _version);
            }

            isDone &= isReleased;
            _epoch = isEphemeral ? epoch : _epoch;
        }

        return isDone;
    }

    /// <summary>The map shows the move: the new owner takes the slot back if it had given it away.</summary>
    private void Adopt(SlotMap map)
    {
        bool isDone = true;
        foreach (bool isEphemeral in new[] { false, true })
        {
            int group = cluster.Config.Layout.IndexOf(map[Slot], isEphemeral);
            List<Group> members = Members(group);
            Epoch epoch = members.Count == 0 ? Epoch.None : members.Max(static member => member.Status.Epoch);
            bool isAdopted = members.Exists(member =>
                member.Status.Epoch == epoch && member.Applied.Value > 0 && member.State.Slots.ReleasedIn(Slot) == 0
                    && member.IsLeader && member.Status.Serving);
            if (!isAdopted)
            {
                _adopted[group] = map.Version;
                Propose(group, CommandKind.AdoptSlots, map.Version);
            }

            isDone &= isAdopted;
        }

        if (isDone)
        {
            Moves++;
            _left--;
            _version = 0;
        }
    }

    /// <summary>The command goes to the leader, if there is one.</summary>
    private void Propose(int group, CommandKind kind, ulong version)
    {
        bool isEphemeral = cluster.Config.Layout.GroupOf(group).IsEphemeral;
        foreach (SimNode node in cluster.Nodes.Where(node => node.Loops?.Group(group).IsLeader == true))
        {
            node.Do(node.Life, () =>
            {
                ByteBuffer buffer = ByteBuffer.Rent();
                new SlotCommand(kind, version)
                {
                    Ranges = [new SlotRange((ushort)Slot, (ushort)Slot, 0)],
                }.Write(buffer, isEphemeral ? Durability.Ephemeral : Durability.Persistent);
                ClientBatch batch = ClientBatch.Rent(buffer, new ModelSink(), node.Loops!.Now);
                batch.Add(new ClientOperation(0, buffer.Length, 0, 0, (ushort)group, IsRead: false));
                node.Loops.Post(batch);
            });
        }
    }

    private void Ask(MetaCommand command)
    {
        SimNode node = _random.Pick(cluster.Nodes);
        node.Do(node.Life, () => node.Loops!.AskMeta(command));
    }

    private List<Group> Members(int group) =>
        [.. cluster.Nodes.Select(node => node.Loops?.Group(group)).OfType<Group>().Where(static each => !each.Failed)];

    /// <summary>After the healing, every node routes by the newest map.</summary>
    public void CheckRoutes()
    {
        SlotMap map = Map;
        foreach (SimNode node in cluster.Nodes)
        {
            Command command = new() { Kind = CommandKind.Get, Durability = Durability.Persistent, Key = "moved/k"u8 };
            if (node.Admission is { } admission && admission.Router.GroupIndexOf(in command) != map[Slot])
            {
                cluster.Rules.Break(
                    "every node routes by the newest map",
                    $"node {node.Id} takes a key of the moved slot to another partition than {map[Slot]}");
            }
        }
    }

    /// <summary>Reads a key of the slot at each leader that has given it away, past all routers.</summary>
    private void Read()
    {
        foreach (SimNode node in cluster.Nodes.Where(static node => node.Loops is not null))
        {
            for (int index = 0; index < cluster.Config.Layout.Count; index++)
            {
                Group group = node.Loops!.Group(index);
                if (group is { IsLeader: true } && group.State.Slots.ReleasedIn(Slot) is var version and > 0)
                {
                    Probe probe = new(node, node.Life, index, group.Status.Epoch, version, new ModelSink());
                    _probes.Add(probe);
                    node.Do(node.Life, () => Post(probe));
                }
            }
        }
    }

    private void Post(Probe probe)
    {
        bool isEphemeral = cluster.Config.Layout.GroupOf(probe.Group).IsEphemeral;
        ByteBuffer buffer = ByteBuffer.Rent();
        new Command
        {
            Kind = CommandKind.Get,
            Durability = isEphemeral ? Durability.Ephemeral : Durability.Persistent,
            Key = "moved/k0"u8,
        }.Write(buffer);
        ClientBatch batch = ClientBatch.Rent(buffer, probe.Sink, probe.Node.Loops!.Now);
        batch.Add(new ClientOperation(0, buffer.Length, 0, 0, (ushort)probe.Group, IsRead: true));
        probe.Node.Loops.Post(batch);
    }

    /// <summary>The rule: nobody answers a read in a slot that was given away and not taken back since.</summary>
    private void LookAtReads()
    {
        foreach (Probe probe in _probes)
        {
            bool isSame = probe.Node.Life == probe.Life
                && probe.Node.Loops?.Group(probe.Group).Status.Epoch == probe.Epoch
                && _adopted.GetValueOrDefault(probe.Group) <= probe.Version;
            if (isSame
                && probe.Sink.Replies.TryGetValue(0, out var reply)
                && reply.Status is OutcomeStatus.Found or OutcomeStatus.NotFound)
            {
                cluster.Rules.Break(
                    "nobody reads in a slot that was given away",
                    $"node {probe.Node.Id} answers {reply.Status} in "
                        + cluster.Config.Layout.GroupOf(probe.Group).Name);
            }
        }

        _probes.RemoveAll(static probe => probe.Node.Life != probe.Life || probe.Sink.Replies.Count > 0);
    }

    private void Look()
    {
        LookAtStates();
        LookAtReads();
        Read();
        foreach (SlotMap map in cluster.Nodes.Select(static node => node.Loops?.Meta.Slots).OfType<SlotMap>())
        {
            if (map.Version > SlotMap.FirstVersion
                && _asked.GetValueOrDefault(map.Version - 1, -1) != map[Slot])
            {
                cluster.Rules.Break(
                    "a map follows on the one that the move names",
                    $"version {map.Version} gives the slot to {map[Slot]}, and no move of version {map.Version - 1} "
                        + $"asked for that");
            }
        }

        foreach (ref (KahunaClient Client, ulong Version) watched in CollectionsMarshal.AsSpan(_watched))
        {
            ulong version = watched.Client.SlotMapVersion;
            if (version < watched.Version)
            {
                cluster.Rules.Break(
                    "a client never goes back to an older map", $"from version {watched.Version} to {version}");
            }

            watched.Version = version;
        }
    }

    /// <summary>The rule: nobody accepts a write in a slot that was given away.</summary>
    private void LookAtStates()
    {
        foreach (SimNode node in cluster.Nodes.Where(static node => node.Loops is not null))
        {
            for (int group = 0; group < cluster.Config.Layout.Count; group++)
            {
                if (node.Loops!.Group(group) is { Failed: false } member && member.State.Slots.HoldsReleased())
                {
                    cluster.Rules.Break(
                        "nobody accepts a write in a slot that was given away",
                        $"node {node.Id} has a key of a released slot in {cluster.Config.Layout.GroupOf(group).Name}");
                }
            }
        }
    }

    /// <summary>A read at a leader that has given the slot away.</summary>
    private sealed record Probe(SimNode Node, int Life, int Group, Epoch Epoch, ulong Version, ModelSink Sink);
}
