using System.Buffers.Binary;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.State.Slots;

/// <summary>
/// One command with which a group gives slots away or takes them over, as the value of a <see cref="Command"/> has it:
/// <c>u64 version</c>, then <c>u16 first, u16 last</c> for each range of slots, little-endian.
/// </summary>
/// <param name="Kind">ReleaseSlots or AdoptSlots.</param>
/// <param name="Version">
/// ReleaseSlots: the map that the move begins with. AdoptSlots: the map that gives the slots to this group.
/// </param>
internal sealed record SlotCommand(CommandKind Kind, ulong Version)
{
    /// <summary>The slots: first and last of each range, ascending and apart. Their partition does not count.</summary>
    public IReadOnlyList<SlotRange> Ranges { get; init; } = [];

    /// <summary>Null when the bytes are no such command.</summary>
    public static SlotCommand? Read(scoped in Command command) =>
        command.Kind is CommandKind.ReleaseSlots or CommandKind.AdoptSlots
            && command.Value.Length > sizeof(ulong)
            && SlotRange.ReadAll(command.Value[sizeof(ulong)..]) is { } ranges
            && BinaryPrimitives.ReadUInt64LittleEndian(command.Value) is var version and >= SlotMap.FirstVersion
                ? new SlotCommand(command.Kind, version) { Ranges = ranges }
                : null;

    /// <summary>Appends the whole command, as the log has it.</summary>
    public void Write(ByteBuffer target, Durability durability)
    {
        byte[] value = new byte[sizeof(ulong) + SlotRange.BytesOf(Ranges)];
        BinaryPrimitives.WriteUInt64LittleEndian(value, Version);
        SlotRange.WriteAll(value.AsSpan(sizeof(ulong)), Ranges);
        new Command { Kind = Kind, Durability = durability, Value = value }.Write(target);
    }
}
