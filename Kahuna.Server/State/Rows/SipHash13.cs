using System.Buffers.Binary;
using System.Numerics;
using System.Runtime.CompilerServices;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012, with one round per word and three at
/// the end): without the secret nobody can tell which inputs collide. Stateless, any thread.
/// </summary>
internal static class SipHash13
{
    public static ulong Hash(ReadOnlySpan<byte> source, in HashSecret secret)
    {
        ulong a = secret.First ^ 0x736F6D6570736575;
        ulong b = secret.Second ^ 0x646F72616E646F6D;
        ulong c = secret.First ^ 0x6C7967656E657261;
        ulong d = secret.Second ^ 0x7465646279746573;
        ulong last = (ulong)source.Length << 56;
        while (source.Length >= sizeof(ulong))
        {
            ulong word = BinaryPrimitives.ReadUInt64LittleEndian(source);
            d ^= word;
            Round(ref a, ref b, ref c, ref d);
            a ^= word;
            source = source[sizeof(ulong)..];
        }

        last |= Tail(source);
        d ^= last;
        Round(ref a, ref b, ref c, ref d);
        a ^= last;
        c ^= 0xFF;
        Round(ref a, ref b, ref c, ref d);
        Round(ref a, ref b, ref c, ref d);
        Round(ref a, ref b, ref c, ref d);
        return a ^ b ^ c ^ d;
    }

    /// <summary>The last bytes, up to seven, as the low bytes of a word.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static ulong Tail(ReadOnlySpan<byte> rest)
    {
        ulong tail = 0;
        int at = 0;
        if (rest.Length >= sizeof(uint))
        {
            tail = BinaryPrimitives.ReadUInt32LittleEndian(rest);
            at = sizeof(uint);
        }

        for (; at < rest.Length; at++)
        {
            tail |= (ulong)rest[at] << (8 * at);
        }

        return tail;
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static void Round(ref ulong a, ref ulong b, ref ulong c, ref ulong d)
    {
        unchecked
        {
            a += b;
            c += d;
            b = BitOperations.RotateLeft(b, 13) ^ a;
            d = BitOperations.RotateLeft(d, 16) ^ c;
            a = BitOperations.RotateLeft(a, 32);
            c += b;
            a += d;
            b = BitOperations.RotateLeft(b, 17) ^ c;
            d = BitOperations.RotateLeft(d, 21) ^ a;
            c = BitOperations.RotateLeft(c, 32);
        }
    }
}
