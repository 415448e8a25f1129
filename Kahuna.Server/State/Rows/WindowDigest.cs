using System.Buffers.Binary;
using System.Numerics;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// The digest of a session's row: a sum of its header and of its places, so that it is kept up with each of them. What
/// the bytes mean is the session's concern. Stateless.
/// </summary>
internal static class WindowDigest
{
    private const ulong Odd1 = 0x9E3779B185EBCA87;
    private const ulong Odd2 = 0xC2B2AE3D27D4EB4F;

    /// <summary>Digest of a whole row, computed anew.</summary>
    public static ulong Of(ReadOnlySpan<byte> name, ReadOnlySpan<byte> value)
    {
        ulong id = SystemRowKind.SessionIn(name);
        ulong sum = OfHeader(id, value);
        ulong low = BinaryPrimitives.ReadUInt64LittleEndian(value);
        ReadOnlySpan<byte> places = value[SystemRowKind.SessionHeaderBytes..];
        uint room = (uint)(places.Length / SystemRowKind.SessionPlaceBytes);
        for (uint i = 0; i < room; i++)
        {
            ulong number = low + i;
            int at = (int)(number & (room - 1)) * SystemRowKind.SessionPlaceBytes;
            sum = unchecked(sum + OfPlace(id, number, places.Slice(at, SystemRowKind.SessionPlaceBytes)));
        }

        return sum;
    }

    /// <summary>What the header adds.</summary>
    public static ulong OfHeader(ulong id, ReadOnlySpan<byte> header)
    {
        ulong low = BinaryPrimitives.ReadUInt64LittleEndian(header);
        ulong high = BinaryPrimitives.ReadUInt64LittleEndian(header[8..]);
        ulong sum = unchecked(((id * Odd1) + (low * Odd2) + BitOperations.RotateLeft(high, 32)) * Odd1);
        return StateDigest.Mix(unchecked(sum + BinaryPrimitives.ReadUInt64LittleEndian(header[16..])));
    }

    /// <summary>What a number's place adds; 0 for one without an outcome.</summary>
    public static ulong OfPlace(ulong id, ulong number, ReadOnlySpan<byte> place)
    {
        if (place[0] == 0)
        {
            return 0;
        }

        ulong sum = unchecked((id + (number * Odd1)) ^ (BinaryPrimitives.ReadUInt64LittleEndian(place) * Odd2));
        sum = unchecked((StateDigest.Mix(sum) + BinaryPrimitives.ReadUInt64LittleEndian(place[8..])) * Odd1);
        return StateDigest.Mix(unchecked(sum ^ (BinaryPrimitives.ReadUInt64LittleEndian(place[16..]) * Odd2)));
    }
}
