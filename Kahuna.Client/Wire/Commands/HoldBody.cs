using System.Buffers.Binary;

namespace Kahuna.Wire.Commands;

/// <summary>
/// The value of a <see cref="CommandKind.TransactionHold"/>: who wants to hold the key, and how.
/// <code>
/// offset  0  u8[16]  id of the transaction
///        16  i64     when it was first tried: microseconds since 1970 by its client's clock. A lower one is older
///        24  u32     milliseconds that are left of its timeout
///        28  u8      mode (<see cref="HoldMode"/>)
///        29  u8      flags (<see cref="HoldFlags"/>)
///        30  u16     reserved, 0
/// </code>
/// A value.
/// </summary>
/// <param name="Id">The transaction.</param>
/// <param name="Begun">When it was first tried, in microseconds since 1970.</param>
/// <param name="LeftMs">What is left of its timeout, in ms.</param>
/// <param name="Mode">How the key is held.</param>
/// <param name="Flags">Options.</param>
internal readonly record struct HoldBody(
    TransactionId Id, long Begun, uint LeftMs, HoldMode Mode, HoldFlags Flags)
{
    /// <summary>Bytes of a value.</summary>
    public const int Bytes = 32;

    public bool Has(HoldFlags flag) => (Flags & flag) != 0;

    /// <summary>Decodes a value. False when its length is another one, or reserved bytes are not 0.</summary>
    public static bool TryRead(ReadOnlySpan<byte> source, out HoldBody body)
    {
        body = default;
        if (source.Length != Bytes || source[30] != 0 || source[31] != 0)
        {
            return false;
        }

        body = new HoldBody(
            TransactionId.Read(source),
            BinaryPrimitives.ReadInt64LittleEndian(source[16..]),
            BinaryPrimitives.ReadUInt32LittleEndian(source[24..]),
            (HoldMode)source[28],
            (HoldFlags)source[29]);
        return true;
    }

    /// <summary>The encoded value.</summary>
    public byte[] ToBytes()
    {
        byte[] bytes = new byte[Bytes];
        Id.Write(bytes);
        BinaryPrimitives.WriteInt64LittleEndian(bytes.AsSpan(16), Begun);
        BinaryPrimitives.WriteUInt32LittleEndian(bytes.AsSpan(24), LeftMs);
        bytes[28] = (byte)Mode;
        bytes[29] = (byte)Flags;
        return bytes;
    }
}

/// <summary>How a key is held. Values are part of the wire format.</summary>
internal enum HoldMode : byte
{
    /// <summary>Refused.</summary>
    Unset = 0,

    /// <summary>To read it: others may hold it in the same way, and nobody else may write it.</summary>
    Shared = 1,

    /// <summary>To write it: nobody else holds it or writes it.</summary>
    Exclusive = 2,
}

/// <summary>Options of a hold. Values are part of the wire format.</summary>
[Flags]
internal enum HoldFlags : byte
{
    None = 0,

    /// <summary>
    /// The transaction holds keys already, here or in other groups: it waits only for transactions that are younger.
    /// </summary>
    HoldsOthers = 1 << 0,

    /// <summary>The answer says whether the key exists, without its value.</summary>
    WithoutValue = 1 << 1,

    /// <summary>All flags of this version.</summary>
    All = HoldsOthers | WithoutValue,
}
