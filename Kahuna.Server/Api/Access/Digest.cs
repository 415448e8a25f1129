using System.Buffers.Binary;

namespace Kahuna.Server.Api.Access;

/// <summary>32 bytes of a hash, as the key of a table. A value.</summary>
internal readonly record struct Digest(ulong A, ulong B, ulong C, ulong D)
{
    /// <summary>Length in bytes.</summary>
    public const int Bytes = 32;

    /// <summary>The value of these bytes.</summary>
    public static Digest From(ReadOnlySpan<byte> bytes) => new(
        BinaryPrimitives.ReadUInt64LittleEndian(bytes),
        BinaryPrimitives.ReadUInt64LittleEndian(bytes[8..]),
        BinaryPrimitives.ReadUInt64LittleEndian(bytes[16..]),
        BinaryPrimitives.ReadUInt64LittleEndian(bytes[24..]));
}
