using System.Buffers.Binary;
using System.Globalization;
using System.Numerics;
using System.Text;

namespace Kahuna.Wire.Routing;

/// <summary>
/// Maps keys to buckets and buckets to slots, as published: XXH64 (seed 0) of the bucket's bytes, modulo
/// <see cref="Slots"/>. A <see cref="SlotMap"/> says which partition owns a slot. Stateless, any thread.
/// </summary>
internal static class KeyRouting
{
    /// <summary>
    /// Number of slots, for ever: 16 for each of the 256 partitions that a cluster may have, so that load can be moved
    /// in small steps, and few enough that a map is an array of 8 KB.
    /// </summary>
    public const int Slots = 4096;

    /// <summary>The part of a key before its last '/'; the whole key when there is none.</summary>
    public static ReadOnlySpan<byte> Bucket(ReadOnlySpan<byte> key)
    {
        int slash = key.LastIndexOf((byte)'/');
        return slash < 0 ? key : key[..slash];
    }

    /// <summary>The slot of a key: 0 to <see cref="Slots"/> - 1.</summary>
    public static int Slot(ReadOnlySpan<byte> key) => (int)(XxHash64.Hash(Bucket(key)) % Slots);
}

/// <summary>
/// Which partition owns each of the <see cref="KeyRouting.Slots"/>, as of one version. A higher version supersedes a
/// lower one. Immutable; any thread.
/// </summary>
internal sealed class SlotMap
{
    /// <summary>Bytes of one encoded range: <c>u16 first, u16 last, u16 partition</c>, little-endian.</summary>
    public const int RangeBytes = 6;

    /// <summary>The version of every initial map.</summary>
    public const ulong FirstVersion = 1;

    private readonly ushort[] _owners;
    private IReadOnlyList<SlotRange>? _ranges;
    private byte[]?[]? _keys;

    private SlotMap(ulong version, int partitions, ushort[] owners)
    {
        Version = version;
        Partitions = partitions;
        _owners = owners;
    }

    public ulong Version { get; }

    /// <summary>Number of partitions.</summary>
    public int Partitions { get; }

    /// <summary>The partition that owns a slot.</summary>
    public int this[int slot] => _owners[slot];

    /// <summary>
    /// The map that a cluster begins with: slot s belongs to partition s * partitions / <see cref="KeyRouting.Slots"/>,
    /// rounded down.
    /// </summary>
    public static SlotMap Initial(int partitions)
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(partitions, 1);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(partitions, KeyRouting.Slots);
        ushort[] owners = new ushort[KeyRouting.Slots];
        for (int slot = 0; slot < owners.Length; slot++)
        {
            owners[slot] = (ushort)(slot * partitions / KeyRouting.Slots);
        }

        return new SlotMap(FirstVersion, partitions, owners);
    }

    /// <summary>
    /// The map with these ranges, which must be in ascending order and cover every slot exactly once; null otherwise,
    /// and for a range of a partition that is not below <paramref name="partitions"/>.
    /// </summary>
    public static SlotMap? Of(ulong version, int partitions, IEnumerable<SlotRange> ranges)
    {
        ushort[] owners = new ushort[KeyRouting.Slots];
        int next = 0;
        foreach (SlotRange range in ranges)
        {
            if (range.First != next
                || range.Last < range.First
                || range.Last >= owners.Length
                || range.Partition >= partitions)
            {
                return null;
            }

            owners.AsSpan(range.First..(range.Last + 1)).Fill(range.Partition);
            next = range.Last + 1;
        }

        return version < FirstVersion || next != owners.Length ? null : new SlotMap(version, partitions, owners);
    }

    /// <summary>Reads encoded ranges; null when they are no map of <paramref name="partitions"/>.</summary>
    public static SlotMap? Read(ReadOnlySpan<byte> source, ulong version, int partitions)
    {
        if (source.Length % RangeBytes != 0 || source.Length / RangeBytes > KeyRouting.Slots)
        {
            return null;
        }

        SlotRange[] ranges = new SlotRange[source.Length / RangeBytes];
        for (int i = 0; i < ranges.Length; i++)
        {
            ReadOnlySpan<byte> range = source.Slice(i * RangeBytes, RangeBytes);
            ranges[i] = new SlotRange(
                BinaryPrimitives.ReadUInt16LittleEndian(range),
                BinaryPrimitives.ReadUInt16LittleEndian(range[2..]),
                BinaryPrimitives.ReadUInt16LittleEndian(range[4..]));
        }

        return Of(version, partitions, ranges);
    }

    /// <summary>The partition that holds a key.</summary>
    public int PartitionOf(ReadOnlySpan<byte> key) => Partitions == 1 ? 0 : _owners[KeyRouting.Slot(key)];

    /// <summary>
    /// Some key that lies in a partition, for commands about no certain key of it; null: the partition owns no slot,
    /// and has no keys.
    /// </summary>
    public byte[]? KeyIn(int partition) => (_keys ??= FindKeys())[partition];

    /// <summary>The owners as ranges of neighbouring slots, in ascending order.</summary>
    public IReadOnlyList<SlotRange> Ranges() => _ranges ??= FindRanges();

    /// <summary>The encoded ranges.</summary>
    public byte[] Encode()
    {
        IReadOnlyList<SlotRange> ranges = Ranges();
        byte[] bytes = new byte[ranges.Count * RangeBytes];
        for (int i = 0; i < ranges.Count; i++)
        {
            Span<byte> range = bytes.AsSpan(i * RangeBytes);
            BinaryPrimitives.WriteUInt16LittleEndian(range, ranges[i].First);
            BinaryPrimitives.WriteUInt16LittleEndian(range[2..], ranges[i].Last);
            BinaryPrimitives.WriteUInt16LittleEndian(range[4..], ranges[i].Partition);
        }

        return bytes;
    }

    /// <summary>
    /// The next version, in which the ranges belong to the partitions that they name; null when a range or a partition
    /// does not exist.
    /// </summary>
    public SlotMap? Move(IReadOnlyList<SlotRange> ranges)
    {
        ushort[] owners = [.. _owners];
        foreach (SlotRange range in ranges)
        {
            if (range.Last < range.First || range.Last >= owners.Length || range.Partition >= Partitions)
            {
                return null;
            }

            owners.AsSpan(range.First..(range.Last + 1)).Fill(range.Partition);
        }

        return ranges.Count == 0 || Version == ulong.MaxValue ? null : new SlotMap(Version + 1, Partitions, owners);
    }

    private byte[]?[] FindKeys()
    {
        byte[]?[] keys = new byte[]?[Partitions];
        int missing = _owners.Distinct().Count();
        for (int i = 0; missing > 0; i++)
        {
            byte[] key = Encoding.UTF8.GetBytes(i.ToString(CultureInfo.InvariantCulture));
            ref byte[]? place = ref keys[PartitionOf(key)];
            missing -= place is null ? 1 : 0;
            place ??= key;
        }

        return keys;
    }

    private List<SlotRange> FindRanges()
    {
        List<SlotRange> ranges = [];
        for (int first = 0; first < _owners.Length;)
        {
            int last = first;
            while (last + 1 < _owners.Length && _owners[last + 1] == _owners[first])
            {
                last++;
            }

            ranges.Add(new SlotRange((ushort)first, (ushort)last, _owners[first]));
            first = last + 1;
        }

        return ranges;
    }
}

/// <summary>Neighbouring slots that belong to one partition. A value.</summary>
/// <param name="First">The first slot.</param>
/// <param name="Last">The last slot.</param>
/// <param name="Partition">The partition that owns them.</param>
internal readonly record struct SlotRange(ushort First, ushort Last, ushort Partition)
{
    private const int Bytes = 4;

    /// <summary>
    /// Reads <c>u16 first, u16 last</c> for each range; null when they are malformed, out of order or beyond the last
    /// slot.
    /// </summary>
    /// <param name="source">The bytes.</param>
    /// <param name="partition">The partition of all of them.</param>
    public static SlotRange[]? ReadAll(ReadOnlySpan<byte> source, int partition = 0)
    {
        if (source.Length % Bytes != 0 || source.Length / Bytes > KeyRouting.Slots)
        {
            return null;
        }

        SlotRange[] ranges = new SlotRange[source.Length / Bytes];
        int next = 0;
        for (int i = 0; i < ranges.Length; i++)
        {
            int first = BinaryPrimitives.ReadUInt16LittleEndian(source[(i * Bytes)..]);
            int last = BinaryPrimitives.ReadUInt16LittleEndian(source[((i * Bytes) + sizeof(ushort))..]);
            if (first < next || last < first || last >= KeyRouting.Slots)
            {
                return null;
            }

            ranges[i] = new SlotRange((ushort)first, (ushort)last, (ushort)partition);
            next = last + 1;
        }

        return ranges;
    }

    /// <summary>Bytes that <see cref="WriteAll"/> needs.</summary>
    public static int BytesOf(IReadOnlyList<SlotRange> ranges) => ranges.Count * Bytes;

    /// <summary>Writes first and last of each range.</summary>
    public static void WriteAll(Span<byte> target, IReadOnlyList<SlotRange> ranges)
    {
        for (int i = 0; i < ranges.Count; i++)
        {
            BinaryPrimitives.WriteUInt16LittleEndian(target[(i * Bytes)..], ranges[i].First);
            BinaryPrimitives.WriteUInt16LittleEndian(target[((i * Bytes) + sizeof(ushort))..], ranges[i].Last);
        }
    }
}

/// <summary>
/// XXH64 as specified by its author (Y. Collet, xxHash specification, "XXH64 algorithm description"). Stateless, any
/// thread.
/// </summary>
internal static class XxHash64
{
    private const ulong P1 = 0x9E3779B185EBCA87;
    private const ulong P2 = 0xC2B2AE3D27D4EB4F;
    private const ulong P3 = 0x165667B19E3779F9;
    private const ulong P4 = 0x85EBCA77C2B2AE63;
    private const ulong P5 = 0x27D4EB2F165667C5;

    public static ulong Hash(ReadOnlySpan<byte> source, ulong seed = 0)
    {
        ulong total = (ulong)source.Length;
        ulong hash;
        if (source.Length >= 32)
        {
            ulong a = unchecked(seed + P1 + P2);
            ulong b = unchecked(seed + P2);
            ulong c = seed;
            ulong d = unchecked(seed - P1);
            while (source.Length >= 32)
            {
                a = Round(a, BinaryPrimitives.ReadUInt64LittleEndian(source));
                b = Round(b, BinaryPrimitives.ReadUInt64LittleEndian(source[8..]));
                c = Round(c, BinaryPrimitives.ReadUInt64LittleEndian(source[16..]));
                d = Round(d, BinaryPrimitives.ReadUInt64LittleEndian(source[24..]));
                source = source[32..];
            }

            hash = unchecked(
                BitOperations.RotateLeft(a, 1)
                    + BitOperations.RotateLeft(b, 7)
                    + BitOperations.RotateLeft(c, 12)
                    + BitOperations.RotateLeft(d, 18));
            hash = Merge(hash, a);
            hash = Merge(hash, b);
            hash = Merge(hash, c);
            hash = Merge(hash, d);
        }
        else
        {
            hash = unchecked(seed + P5);
        }

        hash = unchecked(hash + total);
        while (source.Length >= 8)
        {
            hash = unchecked(
                (BitOperations.RotateLeft(hash ^ Round(0, BinaryPrimitives.ReadUInt64LittleEndian(source)), 27) * P1)
                    + P4);
            source = source[8..];
        }

        if (source.Length >= 4)
        {
            hash = unchecked(
                (BitOperations.RotateLeft(hash ^ (BinaryPrimitives.ReadUInt32LittleEndian(source) * P1), 23) * P2)
                    + P3);
            source = source[4..];
        }

        foreach (byte b in source)
        {
            hash = unchecked(BitOperations.RotateLeft(hash ^ (b * P5), 11) * P1);
        }

        hash = unchecked((hash ^ (hash >> 33)) * P2);
        hash = unchecked((hash ^ (hash >> 29)) * P3);
        return hash ^ (hash >> 32);
    }

    private static ulong Round(ulong accumulator, ulong lane) =>
        unchecked(BitOperations.RotateLeft(accumulator + (lane * P2), 31) * P1);

    private static ulong Merge(ulong hash, ulong accumulator) =>
        unchecked(((hash ^ Round(0, accumulator)) * P1) + P4);
}
