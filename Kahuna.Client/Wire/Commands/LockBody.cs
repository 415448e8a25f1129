using System.Buffers.Binary;

namespace Kahuna.Wire.Commands;

/// <summary>
/// A claim for a lock without lease and wait, decoded in place: the value of <see cref="CommandKind.LockAcquire"/>.
/// <code>
/// offset  0  u8   mode
///         1  u8   reserved, 0
///         2  u16  permits of the semaphore; 0 for other modes
///         4  u16  owner's length
///         6  owner, note
/// </code>
/// </summary>
internal ref struct LockBody
{
    public const int HeaderBytes = 6;

    public LockMode Mode;
    public int Permits;
    public ReadOnlySpan<byte> Owner;
    public ReadOnlySpan<byte> Note;

    /// <summary>Bytes that <see cref="Write"/> fills.</summary>
    public readonly int EncodedBytes => HeaderBytes + Owner.Length + Note.Length;

    /// <summary>Decodes a body; false when malformed.</summary>
    public static bool TryRead(ReadOnlySpan<byte> source, out LockBody body)
    {
        body = default;
        if (source.Length < HeaderBytes
            || source[1] != 0
            || source.Length < HeaderBytes + BinaryPrimitives.ReadUInt16LittleEndian(source[4..]))
        {
            return false;
        }

        int owner = BinaryPrimitives.ReadUInt16LittleEndian(source[4..]);
        body.Mode = (LockMode)source[0];
        body.Permits = BinaryPrimitives.ReadUInt16LittleEndian(source[2..]);
        body.Owner = source.Slice(HeaderBytes, owner);
        body.Note = source[(HeaderBytes + owner)..];
        return true;
    }

    public readonly void Write(Span<byte> target)
    {
        target[0] = (byte)Mode;
        target[1] = 0;
        BinaryPrimitives.WriteUInt16LittleEndian(target[2..], (ushort)Permits);
        BinaryPrimitives.WriteUInt16LittleEndian(target[4..], (ushort)Owner.Length);
        Owner.CopyTo(target[HeaderBytes..]);
        Note.CopyTo(target[(HeaderBytes + Owner.Length)..]);
    }
}
