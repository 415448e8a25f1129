using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// The row of a prepared part, <c>0xFF O, u8[16] id</c>, decoded in place. Its time is the deadline after which the
/// partition may have the transaction aborted.
/// <code>
/// offset  0  i64  cluster time of the preparation
///         8  u16  length of the part's key
///        10  u16  length of the anchor's key
///        12  u32  length of the part
///        16  u16  keys whose time to live is suspended
///        18  u16  account that its writes are charged to; 0 for none
///        20  the part's key, the anchor's key, the part (conditions and lists),
///            then for each such key: i64 deadline, u16 length, key
/// </code>
/// </summary>
internal ref struct PreparedPart
{
    private const int HeaderBytes = 20;
    private const int SuspendedCountAt = 16;
    private const int AccountAt = 18;
    private const int SuspendedBytes = 10;

    public ClusterTime PreparedAt;
    public ReadOnlySpan<byte> Key;
    public ReadOnlySpan<byte> AnchorKey;
    public ReadOnlySpan<byte> Part;

    /// <summary>Whose quota its writes are charged to; 0 for nobody's.</summary>
    public ushort Account;

    /// <summary>Keys whose time to live is suspended; see <see cref="TryTakeSuspended"/>.</summary>
    public ReadOnlySpan<byte> Suspended;

    /// <exception cref="InvalidDataException">The row is damaged.</exception>
    public static PreparedPart Read(ReadOnlySpan<byte> value)
    {
        PreparedPart row = default;
        row.PreparedAt = new ClusterTime(BinaryPrimitives.ReadInt64LittleEndian(value));
        int keyLength = BinaryPrimitives.ReadUInt16LittleEndian(value[8..]);
        int anchorLength = BinaryPrimitives.ReadUInt16LittleEndian(value[10..]);
        int partLength = checked((int)BinaryPrimitives.ReadUInt32LittleEndian(value[12..]));
        row.Account = BinaryPrimitives.ReadUInt16LittleEndian(value[AccountAt..]);
        ReadOnlySpan<byte> rest = value[HeaderBytes..];
        row.Key = rest[..keyLength];
        row.AnchorKey = rest.Slice(keyLength, anchorLength);
        row.Part = rest.Slice(keyLength + anchorLength, partLength);
        row.Suspended = rest[(keyLength + anchorLength + partLength)..];
        return row;
    }

    /// <summary>Takes the first suspended key off a list; false at the end.</summary>
    public static bool TryTakeSuspended(
        scoped ref ReadOnlySpan<byte> list, out ClusterTime deadline, out ReadOnlySpan<byte> key)
    {
        deadline = default;
        key = default;
        if (list.IsEmpty)
        {
            return false;
        }

        deadline = new ClusterTime(BinaryPrimitives.ReadInt64LittleEndian(list));
        int length = BinaryPrimitives.ReadUInt16LittleEndian(list[8..]);
        key = list.Slice(SuspendedBytes, length);
        list = list[(SuspendedBytes + length)..];
        return true;
    }

    /// <summary>Appends what comes before the suspended keys.</summary>
    public static void WriteHeader(
        ByteBuffer target,
        ClusterTime preparedAt,
        ReadOnlySpan<byte> key,
        ReadOnlySpan<byte> anchorKey,
        ReadOnlySpan<byte> part)
    {
        Span<byte> header = target.Take(HeaderBytes);
        header.Clear();
        BinaryPrimitives.WriteInt64LittleEndian(header, preparedAt.Ms);
        BinaryPrimitives.WriteUInt16LittleEndian(header[8..], checked((ushort)key.Length));
        BinaryPrimitives.WriteUInt16LittleEndian(header[10..], checked((ushort)anchorKey.Length));
        BinaryPrimitives.WriteUInt32LittleEndian(header[12..], (uint)part.Length);
        target.Append(key);
        target.Append(anchorKey);
        target.Append(part);
    }

    /// <summary>Says in a header whose quota the writes are charged to.</summary>
    public static void SetAccount(Span<byte> header, ushort account) =>
        BinaryPrimitives.WriteUInt16LittleEndian(header[AccountAt..], account);

    /// <summary>Appends a suspended key to a row that begins at <paramref name="start"/>.</summary>
    public static void AddSuspended(ByteBuffer target, int start, ClusterTime deadline, ReadOnlySpan<byte> key)
    {
        Span<byte> header = target.Take(SuspendedBytes);
        BinaryPrimitives.WriteInt64LittleEndian(header, deadline.Ms);
        BinaryPrimitives.WriteUInt16LittleEndian(header[8..], checked((ushort)key.Length));
        target.Append(key);
        Span<byte> count = target.Array.AsSpan(start + SuspendedCountAt, sizeof(ushort));
        BinaryPrimitives.WriteUInt16LittleEndian(
            count, checked((ushort)(BinaryPrimitives.ReadUInt16LittleEndian(count) + 1)));
    }

    /// <summary>
    /// The keys and ranges that the part holds, each with whether it is written: one per item and suspended key.
    /// </summary>
    public readonly HeldKeys.Enumerator GetEnumerator() => new(Part, Suspended);
}

/// <summary>The keys of a prepared part. See <see cref="PreparedPart.GetEnumerator"/>.</summary>
internal static class HeldKeys
{
    /// <summary>True for an operation that changes its key.</summary>
    public static bool IsWrite(CommandKind kind) =>
        kind is not (CommandKind.Get or CommandKind.Exists or CommandKind.KeyRange);

    /// <summary>Goes over the items of a part, then over its suspended keys, which are held as if written.</summary>
    internal ref struct Enumerator
    {
        private ReadOnlySpan<byte> _items;
        private ReadOnlySpan<byte> _suspended;

        public Enumerator(ReadOnlySpan<byte> part, ReadOnlySpan<byte> suspended)
        {
            bool decodes = TransactionBody.TryRead(part, out TransactionBody body);
            InvariantException.Require(decodes, "a part that was prepared decodes");
            _items = body.Items;
            _suspended = suspended;
        }

        public HeldKey Current { get; private set; }

        public bool MoveNext()
        {
            if (CommandList.TryTake(ref _items, out Command item))
            {
                Current = RangeCondition.Is(in item)
                    ? HeldKey.OfRange(new RangeCondition(in item))
                    : new HeldKey(item.Key, IsWrite(item.Kind));
                return true;
            }

            if (PreparedPart.TryTakeSuspended(ref _suspended, out _, out ReadOnlySpan<byte> key))
            {
                Current = new HeldKey(key, isWritten: true);
                return true;
            }

            return false;
        }
    }
}

/// <summary>One hold of a prepared part: a key, or a range of keys.</summary>
internal readonly ref struct HeldKey(ReadOnlySpan<byte> name, bool isWritten)
{
    /// <summary>The key, or the start of the range.</summary>
    public ReadOnlySpan<byte> Name { get; } = name;

    /// <summary>It is a range.</summary>
    public bool IsRange { get; private init; }

    /// <summary>The first key behind the range; empty: none is.</summary>
    public ReadOnlySpan<byte> End { get; private init; }

    /// <summary>The map of slots by which the range was divided among the partitions.</summary>
    public ulong MapVersion { get; private init; }

    /// <summary>The hold of a condition about a range.</summary>
    public static HeldKey OfRange(scoped in RangeCondition range) => new(range.Start, isWritten: false)
    {
        IsRange = true,
        End = range.End,
        MapVersion = range.MapVersion,
    };

    /// <summary>It is held to be written, alone.</summary>
    public bool IsWritten { get; } = isWritten;
}

/// <summary>
/// The row with the decision about a transaction over several partitions, <c>0xFF D, u8[16] id</c>, in the group of its
/// anchor, decoded in place. Its time is when the leader looks after it.
/// <code>
/// offset  0  u8   decision
///         1  u8   reserved, 0
///         2  u16  participants
///         4  u16  length of the anchor's key
///         6  u16  reserved, 0
///         8  the anchor's key, then the participants, as a <see cref="PrepareBody"/> has them
/// </code>
/// </summary>
internal ref struct DecisionRow
{
    private const int HeaderBytes = 8;

    public TransactionDecision Decision;
    public ReadOnlySpan<byte> AnchorKey;
    public ReadOnlySpan<byte> ParticipantList;

    public static DecisionRow Read(ReadOnlySpan<byte> value)
    {
        DecisionRow row = default;
        row.Decision = (TransactionDecision)value[0];
        int length = BinaryPrimitives.ReadUInt16LittleEndian(value[4..]);
        row.AnchorKey = value.Slice(HeaderBytes, length);
        row.ParticipantList = value[(HeaderBytes + length)..];
        return row;
    }

    /// <summary>Appends a row's value.</summary>
    public static void Write(
        ByteBuffer target,
        TransactionDecision decision,
        ReadOnlySpan<byte> anchorKey,
        int participants,
        ReadOnlySpan<byte> list)
    {
        Span<byte> header = target.Take(HeaderBytes);
        header.Clear();
        header[0] = (byte)decision;
        BinaryPrimitives.WriteUInt16LittleEndian(header[2..], checked((ushort)participants));
        BinaryPrimitives.WriteUInt16LittleEndian(header[4..], checked((ushort)anchorKey.Length));
        target.Append(anchorKey);
        target.Append(list);
    }
}
