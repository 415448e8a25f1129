using System.Buffers.Binary;
using Kahuna.Client.Wire.Buffers;

namespace Kahuna.Client.Wire.Commands;

/// <summary>
/// One command, decoded in place: its spans point into the buffer it was read from. The same bytes travel from the SDK
/// through the door into the log and to every node (docs/wire-format.md).
/// <code>
/// offset  0  u8   kind
///         1  u8   durability
///         2  u16  flags
///         4  u16  key length
///         6  u16  reserved, 0
///         8  u32  value length
///        12  optional fields, present by flag, in this order:
///              IfValue     u32  compared value's length
///              IfRevision  i64  compared revision
///              Ttl         i64  milliseconds
///              AtRevision  i64  revision
///              Number      i64  amount
///              Session     u64  session id, u64 sequence number, u16 lag: the number less the lowest that is not confirmed,
///                          u16 epoch: of an ephemeral key, the lower half of the epoch that the command is for; 0 for any
///              Fenced      i64  token, u16 length of the lock's name
///         …  key, value, compared value, name of the lock
/// </code>
/// All numbers are little-endian.
/// </summary>
internal ref struct Command
{
    /// <summary>Length of the fixed header.</summary>
    public const int HeaderBytes = 12;

    private const int SessionBytes = 20;
    private const int FenceBytes = 10;

    public CommandKind Kind;
    public CommandDurability Durability;
    public CommandFlags Flags;
    public ReadOnlySpan<byte> Key;
    public ReadOnlySpan<byte> Value;
    public ReadOnlySpan<byte> ComparedValue;
    public long ComparedRevision;
    public long TtlMs;
    public long AtRevision;
    public long Number;
    public ulong SessionId;
    public ulong Sequence;
    public ushort Lag;
    public ushort Epoch;
    public long FenceToken;
    public ReadOnlySpan<byte> FenceName;

    /// <summary>True for kinds that do not change anything.</summary>
    public readonly bool IsRead => (byte)Kind >= 0x80;

    public readonly bool Has(CommandFlags flag) => (Flags & flag) != 0;

    /// <summary>Bytes that <see cref="Write(ByteBuffer)"/> appends.</summary>
    public readonly int EncodedBytes => HeaderBytes + OptionalBytes(Flags) + Key.Length + Value.Length + ComparedValue.Length + FenceName.Length;

    /// <summary>
    /// Reads the command that fills <paramref name="source"/> exactly. Checks the structure only (lengths add up, known
    /// flags, reserved bits zero); the meaning is checked by <c>CommandCheck</c>. False when malformed.
    /// </summary>
    public static bool TryRead(ReadOnlySpan<byte> source, out Command command)
    {
        command = default;
        if (source.Length < HeaderBytes)
        {
            return false;
        }

        command.Kind = (CommandKind)source[0];
        command.Durability = (CommandDurability)source[1];
        command.Flags = (CommandFlags)BinaryPrimitives.ReadUInt16LittleEndian(source[2..]);
        int keyLength = BinaryPrimitives.ReadUInt16LittleEndian(source[4..]);
        uint valueLength = BinaryPrimitives.ReadUInt32LittleEndian(source[8..]);
        if ((command.Flags & ~CommandFlags.All) != 0 || source[6] != 0 || source[7] != 0 || source.Length < HeaderBytes + OptionalBytes(command.Flags))
        {
            return false;
        }

        int at = HeaderBytes;
        uint comparedLength = 0;
        if (command.Has(CommandFlags.IfValue))
        {
            comparedLength = BinaryPrimitives.ReadUInt32LittleEndian(source[at..]);
            at += 4;
        }

        if (command.Has(CommandFlags.IfRevision))
        {
            command.ComparedRevision = BinaryPrimitives.ReadInt64LittleEndian(source[at..]);
            at += 8;
        }

        if (command.Has(CommandFlags.Ttl))
        {
            command.TtlMs = BinaryPrimitives.ReadInt64LittleEndian(source[at..]);
            at += 8;
        }

        if (command.Has(CommandFlags.AtRevision))
        {
            command.AtRevision = BinaryPrimitives.ReadInt64LittleEndian(source[at..]);
            at += 8;
        }

        if (command.Has(CommandFlags.Number))
        {
            command.Number = BinaryPrimitives.ReadInt64LittleEndian(source[at..]);
            at += 8;
        }

        if (command.Has(CommandFlags.Session))
        {
            command.SessionId = BinaryPrimitives.ReadUInt64LittleEndian(source[at..]);
            command.Sequence = BinaryPrimitives.ReadUInt64LittleEndian(source[(at + 8)..]);
            command.Lag = BinaryPrimitives.ReadUInt16LittleEndian(source[(at + 16)..]);
            command.Epoch = BinaryPrimitives.ReadUInt16LittleEndian(source[(at + 18)..]);
            at += SessionBytes;
        }

        int fenceLength = 0;
        if (command.Has(CommandFlags.Fenced))
        {
            command.FenceToken = BinaryPrimitives.ReadInt64LittleEndian(source[at..]);
            fenceLength = BinaryPrimitives.ReadUInt16LittleEndian(source[(at + 8)..]);
            at += FenceBytes;
        }

        if ((long)at + keyLength + valueLength + comparedLength + fenceLength != source.Length)
        {
            return false;
        }

        command.Key = source.Slice(at, keyLength);
        command.Value = source.Slice(at + keyLength, (int)valueLength);
        command.ComparedValue = source.Slice(at + keyLength + (int)valueLength, (int)comparedLength);
        command.FenceName = source[^fenceLength..];
        return true;
    }

    /// <summary>The key alone, of a command that was checked before. Empty when the bytes hold none.</summary>
    public static ReadOnlySpan<byte> KeyOf(ReadOnlySpan<byte> source)
    {
        if (source.Length < HeaderBytes)
        {
            return default;
        }

        int at = HeaderBytes + OptionalBytes((CommandFlags)BinaryPrimitives.ReadUInt16LittleEndian(source[2..]));
        int length = BinaryPrimitives.ReadUInt16LittleEndian(source[4..]);
        return at + length <= source.Length ? source.Slice(at, length) : default;
    }

    /// <summary>Whether a command that was checked before may begin a session.</summary>
    public static bool IsOpening(ReadOnlySpan<byte> source) =>
        ((CommandFlags)BinaryPrimitives.ReadUInt16LittleEndian(source[2..]) & (CommandFlags.Session | CommandFlags.Opening)) == (CommandFlags.Session | CommandFlags.Opening);

    /// <summary>A command that was checked before carries a number of a session, so that repeating it is harmless.</summary>
    public static bool IsNumbered(ReadOnlySpan<byte> source) => ((CommandFlags)BinaryPrimitives.ReadUInt16LittleEndian(source[2..]) & CommandFlags.Session) != 0;

    /// <summary>The epoch that a command which was checked before is for; 0 for any.</summary>
    public static ushort EpochOf(ReadOnlySpan<byte> source)
    {
        CommandFlags flags = (CommandFlags)BinaryPrimitives.ReadUInt16LittleEndian(source[2..]);
        return (flags & CommandFlags.Session) == 0 ? (ushort)0 : BinaryPrimitives.ReadUInt16LittleEndian(source[(HeaderBytes + OptionalBytes(flags & ~CommandFlags.Fenced) - sizeof(ushort))..]);
    }

    /// <summary>Appends the encoded command to <paramref name="target"/>. The flags decide which optional fields are written.</summary>
    public readonly void Write(ByteBuffer target)
    {
        Span<byte> span = target.Take(EncodedBytes);
        span[0] = (byte)Kind;
        span[1] = (byte)Durability;
        BinaryPrimitives.WriteUInt16LittleEndian(span[2..], (ushort)Flags);
        BinaryPrimitives.WriteUInt16LittleEndian(span[4..], checked((ushort)Key.Length));
        span[6] = 0;
        span[7] = 0;
        BinaryPrimitives.WriteUInt32LittleEndian(span[8..], (uint)Value.Length);
        int at = HeaderBytes;
        if (Has(CommandFlags.IfValue))
        {
            BinaryPrimitives.WriteUInt32LittleEndian(span[at..], (uint)ComparedValue.Length);
            at += 4;
        }

        if (Has(CommandFlags.IfRevision))
        {
            BinaryPrimitives.WriteInt64LittleEndian(span[at..], ComparedRevision);
            at += 8;
        }

        if (Has(CommandFlags.Ttl))
        {
            BinaryPrimitives.WriteInt64LittleEndian(span[at..], TtlMs);
            at += 8;
        }

        if (Has(CommandFlags.AtRevision))
        {
            BinaryPrimitives.WriteInt64LittleEndian(span[at..], AtRevision);
            at += 8;
        }

        if (Has(CommandFlags.Number))
        {
            BinaryPrimitives.WriteInt64LittleEndian(span[at..], Number);
            at += 8;
        }

        if (Has(CommandFlags.Session))
        {
            BinaryPrimitives.WriteUInt64LittleEndian(span[at..], SessionId);
            BinaryPrimitives.WriteUInt64LittleEndian(span[(at + 8)..], Sequence);
            BinaryPrimitives.WriteUInt16LittleEndian(span[(at + 16)..], Lag);
            BinaryPrimitives.WriteUInt16LittleEndian(span[(at + 18)..], Epoch);
            at += SessionBytes;
        }

        if (Has(CommandFlags.Fenced))
        {
            BinaryPrimitives.WriteInt64LittleEndian(span[at..], FenceToken);
            BinaryPrimitives.WriteUInt16LittleEndian(span[(at + 8)..], checked((ushort)FenceName.Length));
            at += FenceBytes;
        }

        Key.CopyTo(span[at..]);
        Value.CopyTo(span[(at + Key.Length)..]);
        ComparedValue.CopyTo(span[(at + Key.Length + Value.Length)..]);
        FenceName.CopyTo(span[^FenceName.Length..]);
    }

    private static int OptionalBytes(CommandFlags flags) =>
        ((flags & CommandFlags.IfValue) != 0 ? 4 : 0)
        + ((flags & CommandFlags.IfRevision) != 0 ? 8 : 0)
        + ((flags & CommandFlags.Ttl) != 0 ? 8 : 0)
        + ((flags & CommandFlags.AtRevision) != 0 ? 8 : 0)
        + ((flags & CommandFlags.Number) != 0 ? 8 : 0)
        + ((flags & CommandFlags.Session) != 0 ? SessionBytes : 0)
        + ((flags & CommandFlags.Fenced) != 0 ? FenceBytes : 0);
}
