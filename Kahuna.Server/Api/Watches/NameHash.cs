using System.Buffers.Binary;
using System.Security.Cryptography;

namespace Kahuna.Server.Api.Watches;

/// <summary>
/// A hash of bytes that grows byte by byte, so that the hashes of all prefixes of a key cost one pass: a polynomial
/// modulo 2^61 - 1, at a secret place. Two names of n bytes collide for n of 2^61 places, so nobody can choose names
/// that collide. Stateless; any thread.
/// </summary>
internal static class NameHash
{
    /// <summary>The hash of no bytes.</summary>
    public const ulong Empty = 1;

    private const ulong Prime = (1UL << 61) - 1;

    /// <summary>Differs in each process and never leaves it.</summary>
    private static readonly ulong s_place = DrawPlace();

    /// <summary>The hash with one more byte.</summary>
    public static ulong Next(ulong hash, byte next)
    {
        ulong high = Math.BigMul(hash, s_place, out ulong low);
        ulong sum = (low & Prime) + ((high << 3) | (low >> 61)) + next + 1;
        sum = (sum & Prime) + (sum >> 61);
        return sum >= Prime ? sum - Prime : sum;
    }

    /// <summary>The hash of a whole name.</summary>
    public static ulong Of(ReadOnlySpan<byte> name)
    {
        ulong hash = Empty;
        foreach (byte next in name)
        {
            hash = Next(hash, next);
        }

        return hash;
    }

    private static ulong DrawPlace()
    {
        Span<byte> drawn = stackalloc byte[sizeof(ulong)];
        RandomNumberGenerator.Fill(drawn);
        return 2 + (BinaryPrimitives.ReadUInt64LittleEndian(drawn) % (Prime - 2));
    }
}
