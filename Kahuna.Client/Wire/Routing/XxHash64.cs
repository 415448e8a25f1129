using System.Buffers.Binary;
using System.Numerics;

namespace Kahuna.Wire.Routing;

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
