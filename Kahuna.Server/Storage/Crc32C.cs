using System.Buffers.Binary;
using System.Numerics;
using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage;

/// <summary>CRC-32C (Castagnoli, RFC 3720 appendix B.4) by the processor's instruction. Stateless.</summary>
internal static class Crc32C
{
    /// <summary>The checksum of <paramref name="bytes"/>: all ones before and inverted after, as published.</summary>
    public static uint Of(ReadOnlySpan<byte> bytes)
    {
        uint crc = uint.MaxValue;
        if (BitConverter.IsLittleEndian)
        {
            ReadOnlySpan<ulong> words = MemoryMarshal.Cast<byte, ulong>(bytes);
            foreach (ulong word in words)
            {
                crc = BitOperations.Crc32C(crc, word);
            }

            bytes = bytes[(words.Length * sizeof(ulong))..];
        }

        while (bytes.Length >= sizeof(ulong))
        {
            crc = BitOperations.Crc32C(crc, BinaryPrimitives.ReadUInt64LittleEndian(bytes));
            bytes = bytes[sizeof(ulong)..];
        }

        foreach (byte one in bytes)
        {
            crc = BitOperations.Crc32C(crc, one);
        }

        return ~crc;
    }
}
