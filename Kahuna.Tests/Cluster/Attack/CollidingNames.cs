using System.Buffers.Binary;
using System.Numerics;

namespace Kahuna.Tests.Cluster.Attack;

/// <summary>
/// ASCII names of 16 bytes whose XXH64 with seed 0 have the same lower 32 bits. The hash is a chain of steps that can
/// each be undone, so that a second half is found for any first half and any hash (xxHash specification, Y. Collet).
/// Stateless.
/// </summary>
internal static class CollidingNames
{
    private const int NameBytes = 16;
    private const ulong P1 = 0x9E3779B185EBCA87;
    private const ulong P2 = 0xC2B2AE3D27D4EB4F;
    private const ulong P3 = 0x165667B19E3779F9;
    private const ulong P4 = 0x85EBCA77C2B2AE63;
    private const ulong P5 = 0x27D4EB2F165667C5;

    private static readonly ulong s_inverse1 = Inverse(P1);
    private static readonly ulong s_inverse2 = Inverse(P2);
    private static readonly ulong s_inverse3 = Inverse(P3);

    public static List<byte[]> Make(int count, uint lower)
    {
        List<byte[]> names = [];
        byte[] name = new byte[NameBytes];
        "collides"u8.CopyTo(name);
        ulong first = unchecked(
            (BitOperations.RotateLeft((P5 + NameBytes) ^ Round(BinaryPrimitives.ReadUInt64LittleEndian(name)), 27) * P1)
                + P4);
        for (ulong upper = 1; names.Count < count; upper++)
        {
            ulong second = SecondHalf((upper << 32) | lower, first);
            BinaryPrimitives.WriteUInt64LittleEndian(name.AsSpan(8), second);
            if ((second & 0x8080808080808080) == 0)
            {
                names.Add([.. name]);
            }
        }

        return names;
    }

    private static ulong SecondHalf(ulong hash, ulong first)
    {
        unchecked
        {
            hash ^= hash >> 32;
            hash *= s_inverse3;
            hash ^= (hash >> 29) ^ (hash >> 58);
            hash *= s_inverse2;
            hash ^= hash >> 33;
            ulong round = BitOperations.RotateRight((hash - P4) * s_inverse1, 27) ^ first;
            return BitOperations.RotateRight(round * s_inverse1, 31) * s_inverse2;
        }
    }

    private static ulong Round(ulong lane) => unchecked(BitOperations.RotateLeft(lane * P2, 31) * P1);

    /// <summary>The factor that undoes a multiplication by an odd number, by Newton's method.</summary>
    private static ulong Inverse(ulong odd)
    {
        ulong inverse = odd;
        for (int i = 0; i < 6; i++)
        {
            inverse = unchecked(inverse * (2 - (odd * inverse)));
        }

        return inverse;
    }
}
