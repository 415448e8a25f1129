using System.Buffers.Binary;
using Kahuna.Wire.Buffers;

namespace Kahuna.Wire.Commands;

/// <summary>
/// One command, decoded in place: its spans point into the buffer it was read from. The same bytes travel from the SDK
/// through admission into the log and to every node (docs/wire-format.md).
/// <code>
/// offset  0  u8   kind
///         1  u8   durability
///         2  u16  flags
///         4  u16  key length
///         6  u16  account that the write is charged to; 0 for none. Nodes set it; clients send 0
///         8  u32  value length
///        12  optional fields, present by flag, in this order:
///              IfValue     u32  compared value's length
///              IfRevision  i64  compared revision
///              Ttl         i64  milliseconds
///              AtRevision  i64  revision
///              Number      i64  amount
///              Session     u64  session id, u64 sequence number,
///                          u16  lag: the number less the lowest unconfirmed one,
///                          u16  epoch: of an ephemeral key, the lower half of the command's epoch; 0 for any
///              Fenced      i64  token, u16 length of the lock's name
///         …  key, value, compared value, name of the lock
/// </code>
/// All numbers are little-endian. Commands on locks and sequences use the fields of keys under names of their own, such
/// as <see cref="Token"/>.
/// </summary>
internal ref struct Command
{
    /// <summary>Length of the fixed header.</summary>
    public const int HeaderBytes = 12;

    private const int AccountAt = 6;
    private const int SessionBytes = 20;
    private const int FenceBytes = 10;

    public CommandKind Kind;
    public Durability Durability;
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

    /// <summary>
    /// Whose quota a write is charged to; 0 for nobody's. The node that the command came in at sets it.
    /// </summary>
    public ushort Account;

    /// <summary>Locks: the token of the claim. The compared revision of a key.</summary>
    public readonly FencingToken Token => new(ComparedRevision);

    /// <summary>Locks: the lease, in ms. The time to live of a key.</summary>
    public readonly long LeaseMs => TtlMs;

    /// <summary>Locks: how long the claim may wait in the queue, in ms. The number.</summary>
    public readonly long WaitMs => Number;

    /// <summary>Long polls: how long the leader may delay its answer, in ms. The number.</summary>
    public readonly long HoldMs => Number;

    /// <summary>
    /// Transactions: the id of the pessimistic transaction that commits, or nothing. The compared value of a key.
    /// </summary>
    public readonly ReadOnlySpan<byte> Holder =>
        Kind is CommandKind.Transaction or CommandKind.TransactionPrepare ? ComparedValue : default;

    /// <summary>Locks: release only a place in the queue, not a granted lock. The flag of an absent key.</summary>
    public readonly bool OnlyPlace => Has(CommandFlags.IfAbsent);

    /// <summary>Sequences: how many values to take. The number.</summary>
    public readonly long Count => Number;

    /// <summary>Lists: the partition. The number.</summary>
    public readonly long Partition => Number;

    /// <summary>Lists: where the page starts; 0 for the first page. The revision to read a key at.</summary>
    public readonly long Cursor => AtRevision;

    /// <summary>True for kinds that change nothing.</summary>
    public readonly bool IsRead => CommandKinds.IsRead(Kind);

    /// <summary>Its outcome may carry a value, which is remembered under its number.</summary>
    public readonly bool ReturnsValue =>
        Has(CommandFlags.ReturnPrevious) || CommandKinds.Has(Kind, CommandTraits.ReturnsValue);

    public readonly bool Has(CommandFlags flag) => (Flags & flag) != 0;

    /// <summary>Bytes that <see cref="Write(ByteBuffer)"/> appends.</summary>
    public readonly int EncodedBytes =>
        HeaderBytes + OptionalBytes(Flags) + Key.Length + Value.Length + ComparedValue.Length + FenceName.Length;

    /// <summary>
    /// Reads the command that fills <paramref name="source"/> exactly; false when malformed. Checks the structure only:
    /// lengths add up, flags are known. <c>CommandCheck</c> checks the meaning.
    /// </summary>
    public static bool TryRead(ReadOnlySpan<byte> source, out Command command)
    {
        command = default;
        if (source.Length < HeaderBytes)
        {
            return false;
        }

        command.Kind = (CommandKind)source[0];
        command.Durability = (Durability)source[1];
        command.Flags = (CommandFlags)BinaryPrimitives.ReadUInt16LittleEndian(source[2..]);
        int keyLength = BinaryPrimitives.ReadUInt16LittleEndian(source[4..]);
        uint valueLength = BinaryPrimitives.ReadUInt32LittleEndian(source[8..]);
        if ((command.Flags & ~CommandFlags.All) != 0
            || source.Length < HeaderBytes + OptionalBytes(command.Flags))
        {
            return false;
        }

        command.Account = BinaryPrimitives.ReadUInt16LittleEndian(source[AccountAt..]);
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

    /// <summary>The key of a command that was checked before; empty when the bytes hold none.</summary>
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

    /// <summary>True when a command that was checked before may open a session.</summary>
    public static bool IsOpening(ReadOnlySpan<byte> source)
    {
        const CommandFlags Both = CommandFlags.Session | CommandFlags.Opening;
        return ((CommandFlags)BinaryPrimitives.ReadUInt16LittleEndian(source[2..]) & Both) == Both;
    }

    /// <summary>
    /// True when a command that was checked before carries a session number, so that repeating it is harmless.
    /// </summary>
    public static bool IsNumbered(ReadOnlySpan<byte> source) =>
        ((CommandFlags)BinaryPrimitives.ReadUInt16LittleEndian(source[2..]) & CommandFlags.Session) != 0;

    /// <summary>Where the session id of a command stands that was checked before and has one.</summary>
    public static int SessionAt(ReadOnlySpan<byte> source)
    {
        CommandFlags flags = (CommandFlags)BinaryPrimitives.ReadUInt16LittleEndian(source[2..]);
        return HeaderBytes + OptionalBytes(flags & ~CommandFlags.Fenced) - SessionBytes;
    }

    /// <summary>The epoch of a command that was checked before; 0 for any.</summary>
    public static ushort EpochOf(ReadOnlySpan<byte> source)
    {
        CommandFlags flags = (CommandFlags)BinaryPrimitives.ReadUInt16LittleEndian(source[2..]);
        return (flags & CommandFlags.Session) == 0
            ? (ushort)0
            : BinaryPrimitives.ReadUInt16LittleEndian(
                source[(HeaderBytes + OptionalBytes(flags & ~CommandFlags.Fenced) - sizeof(ushort))..]);
    }

    /// <summary>Says in the bytes of a command that was checked before whose account it is charged to.</summary>
    public static void SetAccount(Span<byte> command, ushort account) =>
        BinaryPrimitives.WriteUInt16LittleEndian(command[AccountAt..], account);

    /// <summary>
    /// Appends the encoded command to <paramref name="target"/>. The flags decide which optional fields are written.
    /// </summary>
    public readonly void Write(ByteBuffer target)
    {
        Span<byte> span = target.Take(EncodedBytes);
        span[0] = (byte)Kind;
        span[1] = (byte)Durability;
        BinaryPrimitives.WriteUInt16LittleEndian(span[2..], (ushort)Flags);
        BinaryPrimitives.WriteUInt16LittleEndian(span[4..], checked((ushort)Key.Length));
        BinaryPrimitives.WriteUInt16LittleEndian(span[AccountAt..], Account);
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
