using System.Buffers.Binary;
using Kahuna.Wire.Buffers;

namespace Kahuna.Wire.Commands;

/// <summary>
/// The value of a <see cref="CommandKind.TransactionPrepare"/>, decoded in place: one partition's part of a transaction
/// over several partitions.
/// <code>
/// offset  0  u8[16]  id of the transaction
///        16  u32     milliseconds after which the partition may have the transaction aborted
///        20  u8      flags (<see cref="PrepareFlags"/>)
///        21  u8      reserved, 0
///        22  u16     length of the anchor's key
///        24  u16     participants; 0 unless this is the anchor's part
///        26  the anchor's key, then each participant, then the part's conditions and lists as a
///            <see cref="TransactionBody"/>
/// </code>
/// The anchor is the persistent group that keeps the decision: that of the anchor's key. A participant is
/// <c>u8 durability, u8 reserved, u16 length, key</c>, and the key is that of its own part.
/// </summary>
internal ref struct PrepareBody
{
    public const int HeaderBytes = 26;

    /// <summary>Bytes before the key of a participant.</summary>
    public const int ParticipantBytes = 4;

    public TransactionId Id;
    public uint TimeoutMs;
    public PrepareFlags Flags;
    public int Participants;
    public ReadOnlySpan<byte> AnchorKey;

    /// <summary>The participants; see <see cref="TryTakeParticipant"/>.</summary>
    public ReadOnlySpan<byte> ParticipantList;

    /// <summary>The part as a <see cref="TransactionBody"/>.</summary>
    public ReadOnlySpan<byte> Part;

    public readonly bool Has(PrepareFlags flag) => (Flags & flag) != 0;

    /// <summary>Decodes a value. False when it is malformed; the part is not looked at.</summary>
    public static bool TryRead(ReadOnlySpan<byte> source, out PrepareBody body)
    {
        body = default;
        if (source.Length < HeaderBytes || source[21] != 0)
        {
            return false;
        }

        body.Id = TransactionId.Read(source);
        body.TimeoutMs = BinaryPrimitives.ReadUInt32LittleEndian(source[16..]);
        body.Flags = (PrepareFlags)source[20];
        int keyLength = BinaryPrimitives.ReadUInt16LittleEndian(source[22..]);
        body.Participants = BinaryPrimitives.ReadUInt16LittleEndian(source[24..]);
        ReadOnlySpan<byte> rest = source[HeaderBytes..];
        if ((body.Flags & ~PrepareFlags.All) != 0 || rest.Length < keyLength)
        {
            return false;
        }

        body.AnchorKey = rest[..keyLength];
        rest = rest[keyLength..];
        ReadOnlySpan<byte> list = rest;
        for (int i = 0; i < body.Participants; i++)
        {
            if (!TryTakeParticipant(ref rest, out _, out _))
            {
                return false;
            }
        }

        body.ParticipantList = list[..^rest.Length];
        body.Part = rest;
        return true;
    }

    /// <summary>Takes the first participant off a list. False at the end, and for bytes that are none.</summary>
    public static bool TryTakeParticipant(
        ref ReadOnlySpan<byte> list, out Durability durability, out ReadOnlySpan<byte> key)
    {
        durability = default;
        key = default;
        if (list.Length < ParticipantBytes
            || list[1] != 0
            || BinaryPrimitives.ReadUInt16LittleEndian(list[2..]) is var length
                && list.Length - ParticipantBytes < length)
        {
            return false;
        }

        durability = (Durability)list[0];
        key = list.Slice(ParticipantBytes, length);
        list = list[(ParticipantBytes + length)..];
        return true;
    }

    /// <summary>Appends what comes before the participants.</summary>
    public static void WriteHeader(
        ByteBuffer target, TransactionId id, uint timeoutMs, PrepareFlags flags, ReadOnlySpan<byte> anchorKey,
        int participants)
    {
        Span<byte> header = target.Take(HeaderBytes);
        id.Write(header);
        BinaryPrimitives.WriteUInt32LittleEndian(header[16..], timeoutMs);
        header[20] = (byte)flags;
        header[21] = 0;
        BinaryPrimitives.WriteUInt16LittleEndian(header[22..], checked((ushort)anchorKey.Length));
        BinaryPrimitives.WriteUInt16LittleEndian(header[24..], checked((ushort)participants));
        target.Append(anchorKey);
    }

    /// <summary>Appends a participant.</summary>
    public static void WriteParticipant(ByteBuffer target, Durability durability, ReadOnlySpan<byte> key)
    {
        Span<byte> header = target.Take(ParticipantBytes);
        header[0] = (byte)durability;
        header[1] = 0;
        BinaryPrimitives.WriteUInt16LittleEndian(header[2..], checked((ushort)key.Length));
        target.Append(key);
    }
}

/// <summary>How a part is prepared. Values are part of the log format.</summary>
[Flags]
internal enum PrepareFlags : byte
{
    None = 0,

    /// <summary>The partition keeps the decision. Its part may be empty.</summary>
    Anchor = 1 << 0,

    /// <summary>Nothing is held when a condition does not hold.</summary>
    OnlyIfHolds = 1 << 1,

    /// <summary>All flags of this version.</summary>
    All = Anchor | OnlyIfHolds,
}
