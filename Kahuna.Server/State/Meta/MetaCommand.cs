using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.Meta;

/// <summary>
/// One command of the meta group, as the value of a <see cref="Command"/> has it: <c>u16 node, u64 incarnation, u64
/// nonce, u32 group, u64 epoch, u64 number</c>, then the voters, <c>u16</c> each, little-endian. Which fields count
/// depends on the kind; the others are zero.
/// </summary>
internal sealed record MetaCommand(CommandKind Kind)
{
    private const int FixedBytes = 38;

    /// <summary>The node that speaks.</summary>
    public NodeId Node { get; init; }

    /// <summary>Number of the node's start.</summary>
    public ulong Incarnation { get; init; }

    /// <summary>RegisterNode: tells two starts with one number apart.</summary>
    public ulong Nonce { get; init; }

    public GroupId Group { get; init; }

    public ulong Epoch { get; init; }

    /// <summary>
    /// Of a pledge; or the number of partitions that Configure records; or the lease in ms that RaiseCeiling makes room
    /// for.
    /// </summary>
    public ulong Number { get; init; }

    /// <summary>Configure: the voters of every group.</summary>
    public IReadOnlyList<NodeId> Voters { get; init; } = [];

    /// <summary>A kind that the meta group takes.</summary>
    public static bool IsMeta(CommandKind kind) => kind is >= CommandKind.Configure and <= CommandKind.RaiseCeiling;

    /// <summary>Null when the bytes are no command of the meta group.</summary>
    public static MetaCommand? Read(scoped in Command command)
    {
        ReadOnlySpan<byte> value = command.Value;
        if (!IsMeta(command.Kind) || value.Length < FixedBytes || (value.Length - FixedBytes) % sizeof(ushort) != 0)
        {
            return null;
        }

        NodeId[] voters = new NodeId[(value.Length - FixedBytes) / sizeof(ushort)];
        for (int i = 0; i < voters.Length; i++)
        {
            voters[i] = new NodeId(
                BinaryPrimitives.ReadUInt16LittleEndian(value[(FixedBytes + (i * sizeof(ushort)))..]));
        }

        return new MetaCommand(command.Kind)
        {
            Node = new NodeId(BinaryPrimitives.ReadUInt16LittleEndian(value)),
            Incarnation = BinaryPrimitives.ReadUInt64LittleEndian(value[2..]),
            Nonce = BinaryPrimitives.ReadUInt64LittleEndian(value[10..]),
            Group = new GroupId(BinaryPrimitives.ReadUInt32LittleEndian(value[18..])),
            Epoch = BinaryPrimitives.ReadUInt64LittleEndian(value[22..]),
            Number = BinaryPrimitives.ReadUInt64LittleEndian(value[30..]),
            Voters = voters,
        };
    }

    /// <summary>Appends the whole command, as the log has it.</summary>
    public void Write(ByteBuffer target)
    {
        Span<byte> value = stackalloc byte[FixedBytes + (Voters.Count * sizeof(ushort))];
        BinaryPrimitives.WriteUInt16LittleEndian(value, Node.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(value[2..], Incarnation);
        BinaryPrimitives.WriteUInt64LittleEndian(value[10..], Nonce);
        BinaryPrimitives.WriteUInt32LittleEndian(value[18..], Group.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(value[22..], Epoch);
        BinaryPrimitives.WriteUInt64LittleEndian(value[30..], Number);
        for (int i = 0; i < Voters.Count; i++)
        {
            BinaryPrimitives.WriteUInt16LittleEndian(value[(FixedBytes + (i * sizeof(ushort)))..], Voters[i].Value);
        }

        new Command { Kind = Kind, Durability = Durability.Persistent, Value = value }.Write(target);
    }
}
