using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.State.Meta;

/// <summary>
/// One command of the meta group, as the value of a <see cref="Command"/> has it: <c>u16 node, u64 incarnation, u64
/// nonce, u32 group, u64 epoch, u64 number</c>, then the voters, <c>u16</c> each, or the ranges of slots, <c>u16 first,
/// u16 last</c> each, or the rows of a change (<see cref="AccessRowList"/>), little-endian. Which fields count depends
/// on the kind; the others are zero.
/// </summary>
internal sealed record MetaCommand(CommandKind Kind)
{
    private const int FixedBytes = 38;

    /// <summary>The node that speaks.</summary>
    public NodeId Node { get; init; }

    /// <summary>Number of the node's start.</summary>
    public ulong Incarnation { get; init; }

    /// <summary>MoveSlots: the version of the map that it changes, in the bytes of the start's number.</summary>
    public ulong MapVersion
    {
        get => Incarnation;
        init => Incarnation = value;
    }

    /// <summary>RegisterNode: tells two starts with one number apart.</summary>
    public ulong Nonce { get; init; }

    /// <summary>An ephemeral group. MoveSlots: that of the partition that gives the slots away.</summary>
    public GroupId Group { get; init; }

    /// <summary>The group's epoch. MoveSlots: the one in which it gave the slots away.</summary>
    public Epoch Epoch { get; init; }

    /// <summary>RaiseFeatureLevel: the level that it expects, in the bytes of the epoch.</summary>
    public ulong PresentLevel
    {
        get => Epoch.Value;
        init => Epoch = new Epoch(value);
    }

    /// <summary>
    /// Of a pledge; or the number of partitions that Configure records; or the lease in ms that RaiseCeiling makes room
    /// for; or the level that RaiseFeatureLevel raises to; or, in RegisterNode, <see cref="Features"/>; or the
    /// partition that MoveSlots gives the slots to.
    /// </summary>
    public ulong Number { get; init; }

    /// <summary>
    /// RegisterNode: the feature levels that the node supports, which <see cref="Number"/> carries; 0 is level 1 alone.
    /// </summary>
    public FeatureRange Features
    {
        get
        {
            Span<byte> bytes = stackalloc byte[sizeof(ulong)];
            BinaryPrimitives.WriteUInt64LittleEndian(bytes, Number);
            return FeatureRange.TryRead(bytes, out FeatureRange range) ? range : default;
        }

        init
        {
            Span<byte> bytes = stackalloc byte[sizeof(ulong)];
            bytes.Clear();
            value.Write(bytes);
            Number = value == default ? 0 : BinaryPrimitives.ReadUInt64LittleEndian(bytes);
        }
    }

    /// <summary>Configure: the voters of every group.</summary>
    public IReadOnlyList<NodeId> Voters { get; init; } = [];

    /// <summary>MoveSlots: the slots, of the partition that takes them over.</summary>
    public IReadOnlyList<SlotRange> Slots { get; init; } = [];

    /// <summary>
    /// AccessChange: the rows. Its id is in the bytes of the start's number and nonce, and the version that it is based
    /// on is the number.
    /// </summary>
    public ReadOnlyMemory<byte> Rows { get; init; }

    /// <summary>A kind that the meta group takes.</summary>
    public static bool IsMeta(CommandKind kind) =>
        kind is (>= CommandKind.Configure and <= CommandKind.MoveSlots) or CommandKind.AccessChange;

    /// <summary>Null when the bytes are no command of the meta group.</summary>
    public static MetaCommand? Read(scoped in Command command)
    {
        ReadOnlySpan<byte> value = command.Value;
        if (!IsMeta(command.Kind) || value.Length < FixedBytes)
        {
            return null;
        }

        if (command.Kind == CommandKind.AccessChange)
        {
            return ReadFixed(command.Kind, value) with { Rows = value[FixedBytes..].ToArray() };
        }

        if ((value.Length - FixedBytes) % sizeof(ushort) != 0)
        {
            return null;
        }

        ulong number = BinaryPrimitives.ReadUInt64LittleEndian(value[30..]);
        if (command.Kind == CommandKind.MoveSlots)
        {
            return number < KeyRouting.Slots
                && SlotRange.ReadAll(value[FixedBytes..], (int)number) is { Length: > 0 } slots
                    ? ReadFixed(command.Kind, value) with { Slots = slots }
                    : null;
        }

        NodeId[] voters = new NodeId[(value.Length - FixedBytes) / sizeof(ushort)];
        for (int i = 0; i < voters.Length; i++)
        {
            voters[i] = new NodeId(
                BinaryPrimitives.ReadUInt16LittleEndian(value[(FixedBytes + (i * sizeof(ushort)))..]));
        }

        return ReadFixed(command.Kind, value) with { Voters = voters };
    }

    private static MetaCommand ReadFixed(CommandKind kind, ReadOnlySpan<byte> value) =>
        new(kind)
        {
            Node = new NodeId(BinaryPrimitives.ReadUInt16LittleEndian(value)),
            Incarnation = BinaryPrimitives.ReadUInt64LittleEndian(value[2..]),
            Nonce = BinaryPrimitives.ReadUInt64LittleEndian(value[10..]),
            Group = new GroupId(BinaryPrimitives.ReadUInt32LittleEndian(value[18..])),
            Epoch = new Epoch(BinaryPrimitives.ReadUInt64LittleEndian(value[22..])),
            Number = BinaryPrimitives.ReadUInt64LittleEndian(value[30..]),
        };

    /// <summary>Appends the whole command, as the log has it.</summary>
    public void Write(ByteBuffer target)
    {
        Span<byte> value = new byte[
            FixedBytes + (Voters.Count * sizeof(ushort)) + SlotRange.BytesOf(Slots) + Rows.Length];
        BinaryPrimitives.WriteUInt16LittleEndian(value, Node.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(value[2..], Incarnation);
        BinaryPrimitives.WriteUInt64LittleEndian(value[10..], Nonce);
        BinaryPrimitives.WriteUInt32LittleEndian(value[18..], Group.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(value[22..], Epoch.Value);
        BinaryPrimitives.WriteUInt64LittleEndian(value[30..], Number);
        for (int i = 0; i < Voters.Count; i++)
        {
            BinaryPrimitives.WriteUInt16LittleEndian(value[(FixedBytes + (i * sizeof(ushort)))..], Voters[i].Value);
        }

        SlotRange.WriteAll(value[(FixedBytes + (Voters.Count * sizeof(ushort)))..], Slots);
        Rows.Span.CopyTo(value[^Rows.Length..]);
        new Command { Kind = Kind, Durability = Durability.Persistent, Value = value }.Write(target);
    }
}
