using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Dispatch;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.State.Meta;

/// <summary>
/// The records of the meta group, in the rows of its store: the cluster's configuration, each node's newest start, each
/// ephemeral group's epoch with the pledges that may close it. Every command may come twice, or late: what it asks for
/// is then done already, or refused. Owned by one <see cref="StateMachine"/>; not thread-safe.
/// </summary>
/// <remarks>
/// Names begin with a byte that no key does. <c>0xFF c: u32 partitions, u16 each voter</c>;
/// <c>0xFF n u16: u64 incarnation, u64 nonce</c> and, where a node supports more than level 1, <c>u16 lowest, u16
/// highest feature level</c>; <c>0xFF f: u16 feature level</c> above 1; <c>0xFF g u32: u64 epoch, i64 closed at, i64
/// ceiling, i64 ceiling before, then for each pledge u16 node, u64 taken, u64 released</c>; <c>0xFF s: u64 version,
/// then for each range of slots u16 first, u16 last, u16 partition</c>, and the same under <c>0xFF r u32</c> for the
/// beginning of an epoch.
/// </remarks>
internal sealed class MetaTable(KeyStore store, StateLimits limits) : CommandHandler
{
    private const int NodeBytes = 16;
    private const int GroupBytes = 32;
    private const int PledgeBytes = 18;
    private const int NodeNameBytes = SystemRowKind.PrefixBytes + sizeof(ushort);
    private const int GroupNameBytes = SystemRowKind.PrefixBytes + sizeof(uint);
    private readonly AccessTable _access = new(store);

    /// <inheritdoc/>
    public override void Apply(scoped in Command command, ClusterTime time, KnownHash known, CommandAnswer answer)
    {
        MetaCommand? asked = MetaCommand.Read(in command);
        InvariantException.Require(asked is not null, "a command of the meta group decodes");
        switch (asked.Kind)
        {
            case CommandKind.Configure:
                Configure(asked);
                break;
            case CommandKind.RegisterNode:
                Register(asked);
                break;
            case CommandKind.Pledge:
                Pledge(asked, time);
                break;
            case CommandKind.ReleasePledge:
                Release(asked);
                break;
            case CommandKind.RaiseCeiling:
                Raise(asked);
                break;
            case CommandKind.RaiseFeatureLevel:
                RaiseFeatureLevel(asked);
                break;
            case CommandKind.MoveSlots:
                Move(asked);
                break;
            case CommandKind.AccessChange:
                _access.Apply(asked);
                break;
        }
    }

    /// <summary>The cluster's feature level.</summary>
    public FeatureLevel FeatureLevel =>
        Find(SystemRowKind.FeatureLevel.ToName()) is { IsNone: false } row ? ReadLevel(ValueOf(row)) : default;

    /// <summary>Everything that is recorded.</summary>
    public MetaView View()
    {
        Dictionary<NodeId, MetaNode> nodes = [];
        Dictionary<GroupId, MetaGroup> groups = [];
        int partitions = 0;
        NodeId[] voters = [];
        Dictionary<GroupId, SlotMap> slotsOfEpochs = [];
        for (Row row = Row.First; row.Value <= store.Keys.Count; row = row.Next)
        {
            ref readonly KeyEntry entry = ref store.Keys[row];
            ReadOnlySpan<byte> name = entry.IsFree ? default : store.Keys.Key(in entry);
            ReadOnlySpan<byte> value = entry.IsFree ? default : store.Keys.Value(in entry);
            SystemRowKind? kind = SystemRowKind.Of(name);
            if (kind == SystemRowKind.Configuration)
            {
                partitions = BinaryPrimitives.ReadInt32LittleEndian(value);
                voters = ReadVoters(value);
            }
            else if (kind == SystemRowKind.Node)
            {
                nodes[new NodeId(BinaryPrimitives.ReadUInt16LittleEndian(name[SystemRowKind.PrefixBytes..]))] =
                    ReadNode(value);
            }
            else if (kind == SystemRowKind.Group)
            {
                groups[new GroupId(BinaryPrimitives.ReadUInt32LittleEndian(name[SystemRowKind.PrefixBytes..]))] =
                    ReadGroup(value);
            }
            else if (kind == SystemRowKind.SlotMapOfEpoch)
            {
                GroupId group = new(BinaryPrimitives.ReadUInt32LittleEndian(name[SystemRowKind.PrefixBytes..]));
                slotsOfEpochs[group] = ReadSlots(value, Partitions());
            }
        }

        return new MetaView(partitions, voters, nodes, groups, limits.LeaseCeilingMs)
        {
            FeatureLevel = FeatureLevel,
            Slots = Slots(),
            SlotsOfEpochs = slotsOfEpochs,
            Access = _access.Rows(),
        };
    }

    private void Configure(MetaCommand asked)
    {
        byte[] name = SystemRowKind.Configuration.ToName();
        if (!Find(name).IsNone)
        {
            return;
        }

        byte[] value = new byte[sizeof(int) + (asked.Voters.Count * sizeof(ushort))];
        BinaryPrimitives.WriteInt32LittleEndian(value, (int)asked.Number);
        for (int i = 0; i < asked.Voters.Count; i++)
        {
            BinaryPrimitives.WriteUInt16LittleEndian(
                value.AsSpan(sizeof(int) + (i * sizeof(ushort))), asked.Voters[i].Value);
        }

        Put(name, value);
        if (asked.Number is >= 1 and <= KeyRouting.Slots)
        {
            Put(SystemRowKind.SlotMap.ToName(), SlotMap.Initial((int)asked.Number));
        }
    }

    /// <summary>
    /// Gives slots to another partition, in the next version of the map. Only if nobody has changed the map since, and
    /// if the ephemeral group that gave them away is still in the epoch in which it did: a later one has forgotten it.
    /// </summary>
    private void Move(MetaCommand asked)
    {
        if (Slots() is { } slots
            && slots.Version == asked.MapVersion
            && Group(asked.Group).Epoch == asked.Epoch
            && slots.Move(asked.Slots) is { } moved)
        {
            Put(SystemRowKind.SlotMap.ToName(), moved);
        }
    }

    /// <summary>The map of slots; the initial one where none is recorded, null before the configuration.</summary>
    private SlotMap? Slots()
    {
        int partitions = Partitions();
        return Find(SystemRowKind.SlotMap.ToName()) is { IsNone: false } row
            ? ReadSlots(ValueOf(row), partitions)
            : partitions is >= 1 and <= KeyRouting.Slots ? SlotMap.Initial(partitions) : null;
    }

    private int Partitions() =>
        Find(SystemRowKind.Configuration.ToName()) is { IsNone: false } row
            ? BinaryPrimitives.ReadInt32LittleEndian(ValueOf(row))
            : 0;

    private void Put(ReadOnlySpan<byte> name, SlotMap slots)
    {
        byte[] ranges = slots.Encode();
        byte[] value = new byte[sizeof(ulong) + ranges.Length];
        BinaryPrimitives.WriteUInt64LittleEndian(value, slots.Version);
        ranges.CopyTo(value.AsSpan(sizeof(ulong)));
        Put(name, value);
    }

    private static SlotMap ReadSlots(ReadOnlySpan<byte> value, int partitions)
    {
        SlotMap? slots = value.Length < sizeof(ulong) ? null : SlotMap.Read(
            value[sizeof(ulong)..], BinaryPrimitives.ReadUInt64LittleEndian(value), partitions);
        InvariantException.Require(slots is not null, "a recorded map of slots decodes");
        return slots;
    }

    /// <summary>The higher number is the later start: an earlier one that comes late changes nothing.</summary>
    private void Register(MetaCommand asked)
    {
        Span<byte> name = NameOf(asked.Node, stackalloc byte[NodeNameBytes]);
        if (Find(name) is { IsNone: false } row && ReadNode(ValueOf(row)).Incarnation >= asked.Incarnation)
        {
            return;
        }

        Span<byte> value = stackalloc byte[NodeBytes + FeatureRange.Bytes];
        BinaryPrimitives.WriteUInt64LittleEndian(value, asked.Incarnation);
        BinaryPrimitives.WriteUInt64LittleEndian(value[8..], asked.Nonce);
        asked.Features.Write(value[NodeBytes..]);
        Put(name, asked.Features == default ? value[..NodeBytes] : value);
    }

    /// <summary>
    /// Raises the level if every voter's newest start supports the new one. The leader that asks has looked already;
    /// but a node may have come back with an earlier version meanwhile, and only the order of the log decides.
    /// </summary>
    private void RaiseFeatureLevel(MetaCommand asked)
    {
        if (asked.PresentLevel != (ulong)FeatureLevel.Value
            || asked.Number <= asked.PresentLevel
            || asked.Number > ushort.MaxValue)
        {
            return;
        }

        FeatureLevel level = new((int)asked.Number);
        NodeId[] voters = Voters();
        if (voters.Length == 0 || !Array.TrueForAll(voters, voter => FeaturesOf(voter).Contains(level)))
        {
            return;
        }

        byte[] value = new byte[sizeof(ushort)];
        BinaryPrimitives.WriteUInt16LittleEndian(value, (ushort)asked.Number);
        Put(SystemRowKind.FeatureLevel.ToName(), value);
    }

    /// <summary>What a node's newest start supports; level 1 alone for one that never registered.</summary>
    private FeatureRange FeaturesOf(NodeId node)
    {
        Span<byte> name = NameOf(node, stackalloc byte[NodeNameBytes]);
        return Find(name) is { IsNone: false } row ? ReadNode(ValueOf(row)).Features : default;
    }

    private void Pledge(MetaCommand asked, ClusterTime time)
    {
        MetaGroup group = Group(asked.Group);
        MetaPledge known = group.PledgeOf(asked.Node);
        if (!IsOfNewestStart(asked)
            || group.Epoch != asked.Epoch
            || asked.Number <= known.Taken
            || asked.Number <= known.Released)
        {
            return;
        }

        List<MetaPledge> pledges = Without(group, asked.Node);
        pledges.Add(new MetaPledge(asked.Node, asked.Number, known.Released));
        NodeId[] voters = Voters();
        int active = pledges.Count(pledge => pledge.IsActive && voters.Contains(pledge.Node));

        // Leases of an epoch before the one that is closed may still go on, too: it has granted nothing while they
        // could.
        long mayGoOnMs = Math.Max(group.CeilingMs, group.CeilingBeforeMs - (time - group.Closed));
        bool closes = voters.Length > 0 && active > voters.Length / 2;
        Put(asked.Group, closes
            ? new MetaGroup(group.Epoch.Next(), time, limits.LeaseCeilingMs, mayGoOnMs, [])
            : group with { Pledges = pledges });
        if (closes && Slots() is { Version: > SlotMap.FirstVersion } slots)
        {
            // The next epoch knows nothing of what this one gave away.
            Span<byte> name = stackalloc byte[GroupNameBytes];
            SystemRowKind.SlotMapOfEpoch.WritePrefix(name);
            BinaryPrimitives.WriteUInt32LittleEndian(name[SystemRowKind.PrefixBytes..], asked.Group.Value);
            Put(name, slots);
        }
    }

    /// <summary>A number that is given back before it was taken is never taken.</summary>
    private void Release(MetaCommand asked)
    {
        MetaGroup group = Group(asked.Group);
        MetaPledge known = group.PledgeOf(asked.Node);
        if (!IsOfNewestStart(asked) || group.Epoch != asked.Epoch || asked.Number <= known.Released)
        {
            return;
        }

        List<MetaPledge> pledges = Without(group, asked.Node);
        pledges.Add(known with { Node = asked.Node, Released = asked.Number });
        Put(asked.Group, group with { Pledges = pledges });
    }

    private void Raise(MetaCommand asked)
    {
        MetaGroup group = Group(asked.Group);
        if (group.Epoch == asked.Epoch && (long)asked.Number > group.CeilingMs)
        {
            Put(asked.Group, group with { CeilingMs = (long)asked.Number });
        }
    }

    private bool IsOfNewestStart(MetaCommand asked)
    {
        Span<byte> name = NameOf(asked.Node, stackalloc byte[NodeNameBytes]);
        return Find(name) is { IsNone: false } row && ReadNode(ValueOf(row)).Incarnation == asked.Incarnation;
    }

    private static List<MetaPledge> Without(MetaGroup group, NodeId node) =>
        [.. group.Pledges.Where(pledge => pledge.Node != node)];

    private NodeId[] Voters() =>
        Find(SystemRowKind.Configuration.ToName()) is { IsNone: false } row ? ReadVoters(ValueOf(row)) : [];

    private MetaGroup Group(GroupId id)
    {
        Span<byte> name = NameOf(id, stackalloc byte[GroupNameBytes]);
        return Find(name) is { IsNone: false } row ? ReadGroup(ValueOf(row)) : MetaGroup.First(limits.LeaseCeilingMs);
    }

    private void Put(GroupId id, MetaGroup group)
    {
        Span<byte> name = NameOf(id, stackalloc byte[GroupNameBytes]);
        byte[] value = new byte[GroupBytes + (group.Pledges.Count * PledgeBytes)];
        BinaryPrimitives.WriteUInt64LittleEndian(value, group.Epoch.Value);
        BinaryPrimitives.WriteInt64LittleEndian(value.AsSpan(8), group.Closed.Ms);
        BinaryPrimitives.WriteInt64LittleEndian(value.AsSpan(16), group.CeilingMs);
        BinaryPrimitives.WriteInt64LittleEndian(value.AsSpan(24), group.CeilingBeforeMs);
        for (int i = 0; i < group.Pledges.Count; i++)
        {
            Span<byte> pledge = value.AsSpan(GroupBytes + (i * PledgeBytes));
            BinaryPrimitives.WriteUInt16LittleEndian(pledge, group.Pledges[i].Node.Value);
            BinaryPrimitives.WriteUInt64LittleEndian(pledge[2..], group.Pledges[i].Taken);
            BinaryPrimitives.WriteUInt64LittleEndian(pledge[10..], group.Pledges[i].Released);
        }

        Put(name, value);
    }

    private Row Find(ReadOnlySpan<byte> name) => store.System.Find(name);

    private static Span<byte> NameOf(NodeId node, Span<byte> scratch)
    {
        SystemRowKind.Node.WritePrefix(scratch);
        BinaryPrimitives.WriteUInt16LittleEndian(scratch[SystemRowKind.PrefixBytes..], node.Value);
        return scratch;
    }

    private static Span<byte> NameOf(GroupId group, Span<byte> scratch)
    {
        SystemRowKind.Group.WritePrefix(scratch);
        BinaryPrimitives.WriteUInt32LittleEndian(scratch[SystemRowKind.PrefixBytes..], group.Value);
        return scratch;
    }

    private ReadOnlySpan<byte> ValueOf(Row row) => store.Keys.Value(in store.Keys[row]);

    private void Put(ReadOnlySpan<byte> name, ReadOnlySpan<byte> value)
    {
        Row row = Find(name);
        if (row.IsNone)
        {
            store.Create(name, store.Keys.HashOf(name), value, isNull: false);
        }
        else
        {
            store.Write(row, value, isNull: false, HistoryChoice.NotKept);
        }
    }

    private static NodeId[] ReadVoters(ReadOnlySpan<byte> value)
    {
        NodeId[] voters = new NodeId[(value.Length - sizeof(int)) / sizeof(ushort)];
        for (int i = 0; i < voters.Length; i++)
        {
            voters[i] = new NodeId(
                BinaryPrimitives.ReadUInt16LittleEndian(value[(sizeof(int) + (i * sizeof(ushort)))..]));
        }

        return voters;
    }

    private static MetaNode ReadNode(ReadOnlySpan<byte> value) =>
        new(BinaryPrimitives.ReadUInt64LittleEndian(value), BinaryPrimitives.ReadUInt64LittleEndian(value[8..]))
        {
            Features = value.Length > NodeBytes && FeatureRange.TryRead(value[NodeBytes..], out FeatureRange range)
                ? range
                : default,
        };

    private static FeatureLevel ReadLevel(ReadOnlySpan<byte> value) =>
        new(BinaryPrimitives.ReadUInt16LittleEndian(value));

    private static MetaGroup ReadGroup(ReadOnlySpan<byte> value)
    {
        MetaPledge[] pledges = new MetaPledge[(value.Length - GroupBytes) / PledgeBytes];
        for (int i = 0; i < pledges.Length; i++)
        {
            ReadOnlySpan<byte> pledge = value[(GroupBytes + (i * PledgeBytes))..];
            pledges[i] = new MetaPledge(
                new NodeId(BinaryPrimitives.ReadUInt16LittleEndian(pledge)),
                BinaryPrimitives.ReadUInt64LittleEndian(pledge[2..]),
                BinaryPrimitives.ReadUInt64LittleEndian(pledge[10..]));
        }

        return new MetaGroup(
            new Epoch(BinaryPrimitives.ReadUInt64LittleEndian(value)),
            new ClusterTime(BinaryPrimitives.ReadInt64LittleEndian(value[8..])),
            BinaryPrimitives.ReadInt64LittleEndian(value[16..]),
            BinaryPrimitives.ReadInt64LittleEndian(value[24..]),
            pledges);
    }
}
