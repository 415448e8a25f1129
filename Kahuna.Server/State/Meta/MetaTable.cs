using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Dispatch;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.Meta;

/// <summary>
/// The records of the meta group, in the rows of its store: the cluster's configuration, each node's newest start, each
/// ephemeral group's epoch with the pledges that may close it. Every command may come twice, or late: what it asks for
/// is then done already, or refused. Owned by one <see cref="StateMachine"/>; not thread-safe.
/// </summary>
/// <remarks>
/// Names begin with a byte that no key does. <c>0xFF c: u32 partitions, u16 each voter</c>;
/// <c>0xFF n u16: u64 incarnation, u64 nonce</c>; <c>0xFF g u32: u64 epoch, i64 closed at, i64 ceiling, i64 ceiling
/// before, then for each pledge u16 node, u64 taken, u64 released</c>.
/// </remarks>
internal sealed class MetaTable(KeyStore store, StateLimits limits) : CommandHandler
{
    private const int GroupBytes = 32;
    private const int PledgeBytes = 18;
    private const int NodeNameBytes = SystemRowKind.PrefixBytes + sizeof(ushort);
    private const int GroupNameBytes = SystemRowKind.PrefixBytes + sizeof(uint);

    /// <inheritdoc/>
    public override void Apply(scoped in Command command, long timeMs, KnownHash known, CommandAnswer answer)
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
                Pledge(asked, timeMs);
                break;
            case CommandKind.ReleasePledge:
                Release(asked);
                break;
            case CommandKind.RaiseCeiling:
                Raise(asked);
                break;
        }
    }

    /// <summary>Everything that is recorded.</summary>
    public MetaView View()
    {
        Dictionary<NodeId, MetaNode> nodes = [];
        Dictionary<GroupId, MetaGroup> groups = [];
        int partitions = 0;
        NodeId[] voters = [];
        for (int row = 1; row <= store.Keys.Count; row++)
        {
            ref readonly KeyEntry entry = ref store.Keys[row];
            ReadOnlySpan<byte> name = store.Keys.Key(in entry);
            ReadOnlySpan<byte> value = store.Keys.Value(in entry);
            SystemRowKind? kind = SystemRowKind.Of(name);
            if (kind == SystemRowKind.Configuration)
            {
                partitions = BinaryPrimitives.ReadInt32LittleEndian(value);
                voters = ReadVoters(value);
            }
            else if (kind == SystemRowKind.Node)
            {
                nodes[new NodeId(BinaryPrimitives.ReadUInt16LittleEndian(name[SystemRowKind.PrefixBytes..]))] =
                    ReadNode(
                    value);
            }
            else if (kind == SystemRowKind.Group)
            {
                groups[new GroupId(BinaryPrimitives.ReadUInt32LittleEndian(name[SystemRowKind.PrefixBytes..]))] =
                    ReadGroup(
                    value);
            }
        }

        return new MetaView(partitions, voters, nodes, groups, limits.LeaseCeilingMs);
    }

    private void Configure(MetaCommand asked)
    {
        byte[] name = SystemRowKind.Configuration.ToName();
        if (Find(name) != 0)
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
    }

    /// <summary>The higher number is the later start: an earlier one that comes late changes nothing.</summary>
    private void Register(MetaCommand asked)
    {
        Span<byte> name = NameOf(asked.Node, stackalloc byte[NodeNameBytes]);
        if (Find(name) is var row and not 0 && ReadNode(ValueOf(row)).Incarnation >= asked.Incarnation)
        {
            return;
        }

        Span<byte> value = stackalloc byte[16];
        BinaryPrimitives.WriteUInt64LittleEndian(value, asked.Incarnation);
        BinaryPrimitives.WriteUInt64LittleEndian(value[8..], asked.Nonce);
        Put(name, value);
    }

    private void Pledge(MetaCommand asked, long timeMs)
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
        long mayGoOnMs = Math.Max(group.CeilingMs, group.CeilingBeforeMs - (timeMs - group.ClosedMs));
        Put(asked.Group, voters.Length > 0 && active > voters.Length / 2
            ? new MetaGroup(group.Epoch + 1, timeMs, limits.LeaseCeilingMs, mayGoOnMs, [])
            : group with { Pledges = pledges });
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
        return Find(name) is var row and not 0 && ReadNode(ValueOf(row)).Incarnation == asked.Incarnation;
    }

    private static List<MetaPledge> Without(MetaGroup group, NodeId node) =>
        [.. group.Pledges.Where(pledge => pledge.Node != node)];

    private NodeId[] Voters() =>
        Find(SystemRowKind.Configuration.ToName()) is var row and not 0 ? ReadVoters(ValueOf(row)) : [];

    private MetaGroup Group(GroupId id)
    {
        Span<byte> name = NameOf(id, stackalloc byte[GroupNameBytes]);
        return Find(name) is var row and not 0 ? ReadGroup(ValueOf(row)) : MetaGroup.First(limits.LeaseCeilingMs);
    }

    private void Put(GroupId id, MetaGroup group)
    {
        Span<byte> name = NameOf(id, stackalloc byte[GroupNameBytes]);
        byte[] value = new byte[GroupBytes + (group.Pledges.Count * PledgeBytes)];
        BinaryPrimitives.WriteUInt64LittleEndian(value, group.Epoch);
        BinaryPrimitives.WriteInt64LittleEndian(value.AsSpan(8), group.ClosedMs);
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

    private int Find(ReadOnlySpan<byte> name) => store.System.Find(name);

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

    private ReadOnlySpan<byte> ValueOf(int row) => store.Keys.Value(in store.Keys[row]);

    private void Put(ReadOnlySpan<byte> name, ReadOnlySpan<byte> value)
    {
        int row = Find(name);
        if (row == 0)
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
        new(BinaryPrimitives.ReadUInt64LittleEndian(value), BinaryPrimitives.ReadUInt64LittleEndian(value[8..]));

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
            BinaryPrimitives.ReadUInt64LittleEndian(value),
            BinaryPrimitives.ReadInt64LittleEndian(value[8..]),
            BinaryPrimitives.ReadInt64LittleEndian(value[16..]),
            BinaryPrimitives.ReadInt64LittleEndian(value[24..]),
            pledges);
    }
}
