using System.Buffers.Binary;

namespace Kahuna.Wire.Watches;

/// <summary>
/// A point among the changes of one group: everything up to and including change <see cref="N"/> of entry
/// <see cref="Index"/> lies before it. The same on every member. Points of one group ascend. A value of 24 bytes on the
/// wire: u32 group, u32 n, u64 epoch, u64 index.
/// </summary>
/// <param name="Group">The Raft group.</param>
/// <param name="Epoch">Of an ephemeral group: its epoch; 0 of others.</param>
/// <param name="Index">The log entry.</param>
/// <param name="N">The number of the change among those of the entry; <see cref="AllOfEntry"/> for all of them.</param>
internal readonly record struct ChangePoint(uint Group, ulong Epoch, ulong Index, uint N) : IComparable<ChangePoint>
{
    /// <summary>Encoded length.</summary>
    public const int Bytes = 24;

    /// <summary>Behind the last change of the entry.</summary>
    public const uint AllOfEntry = uint.MaxValue;

    /// <summary>The bit of the ids of ephemeral groups.</summary>
    private const uint EphemeralBit = 1u << 30;

    /// <summary>The group holds ephemeral keys.</summary>
    public bool IsEphemeral => (Group & EphemeralBit) != 0;

    public static bool operator <(ChangePoint left, ChangePoint right) => left.CompareTo(right) < 0;

    public static bool operator >(ChangePoint left, ChangePoint right) => left.CompareTo(right) > 0;

    public static bool operator <=(ChangePoint left, ChangePoint right) => left.CompareTo(right) <= 0;

    public static bool operator >=(ChangePoint left, ChangePoint right) => left.CompareTo(right) >= 0;

    /// <summary>Behind everything of an entry.</summary>
    public static ChangePoint After(uint group, ulong epoch, ulong index) => new(group, epoch, index, AllOfEntry);

    /// <summary>Reads a point from the first 24 bytes.</summary>
    public static ChangePoint Read(ReadOnlySpan<byte> source) =>
        new(
            BinaryPrimitives.ReadUInt32LittleEndian(source),
            BinaryPrimitives.ReadUInt64LittleEndian(source[8..]),
            BinaryPrimitives.ReadUInt64LittleEndian(source[16..]),
            BinaryPrimitives.ReadUInt32LittleEndian(source[4..]));

    /// <summary>Writes the point into the first 24 bytes.</summary>
    public void Write(Span<byte> target)
    {
        BinaryPrimitives.WriteUInt32LittleEndian(target, Group);
        BinaryPrimitives.WriteUInt32LittleEndian(target[4..], N);
        BinaryPrimitives.WriteUInt64LittleEndian(target[8..], Epoch);
        BinaryPrimitives.WriteUInt64LittleEndian(target[16..], Index);
    }

    /// <summary>The order of the changes of one group; points of different groups have no order.</summary>
    public int CompareTo(ChangePoint other)
    {
        int order = Epoch.CompareTo(other.Epoch);
        order = order != 0 ? order : Index.CompareTo(other.Index);
        return order != 0 ? order : N.CompareTo(other.N);
    }
}
