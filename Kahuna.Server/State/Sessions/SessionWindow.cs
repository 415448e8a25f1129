using System.Buffers.Binary;
using System.Numerics;
using System.Runtime.CompilerServices;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Routing;

namespace Kahuna.Server.State.Sessions;

/// <summary>
/// The value of a session's row: which numbers are confirmed, and the outcomes of those that are not. Little endian.
/// <code>
/// offset  0  u64  low: every number below it is confirmed, and refused from now on
///         8  u64  high: the highest number that was carried out
///        16  u32  bytes that values of its outcomes take up, which have rows of their own
///        20  u16  left: confirmed numbers whose values are still to be freed
///        22  u16  the place from which these are looked for
///        24  room × 24 bytes, where room is 0 or a power of two; number n stands at place n modulo room:
///              0  u8   status of its outcome (0: the number was not carried out here)
///              1  u8   1: the outcome has a value, which has a row of its own; 2: that value is null;
///                      4: there is no outcome here, and at offset 8 a confirmed number whose value is to be freed
///              2  u16  zero
///              4  u32  check of the command
///              8  i64  revision
///             16  i64  number of the outcome
/// </code>
/// A view on a row's bytes; valid until the row changes otherwise.
/// </summary>
internal readonly ref struct SessionWindow(Span<byte> bytes)
{
    /// <summary>Bytes before the first place, and of a session that remembers no outcome.</summary>
    public const int HeaderBytes = SystemRowKind.SessionHeaderBytes;

    public const int PlaceBytes = SystemRowKind.SessionPlaceBytes;

    private const int KeptOffset = 16;
    private const int LeftOffset = 20;
    private const int NextOffset = 22;
    private const int NumberOffset = 8;
    private const byte FlagValue = 1;
    private const byte FlagNull = 2;
    private const byte FlagLeft = 4;

    private readonly Span<byte> _bytes = bytes;

    /// <summary>The lowest number that is not confirmed.</summary>
    public ulong Low
    {
        get => BinaryPrimitives.ReadUInt64LittleEndian(_bytes);
        set => BinaryPrimitives.WriteUInt64LittleEndian(_bytes, value);
    }

    /// <summary>The highest number that was carried out.</summary>
    public ulong High
    {
        get => BinaryPrimitives.ReadUInt64LittleEndian(_bytes[8..]);
        set => BinaryPrimitives.WriteUInt64LittleEndian(_bytes[8..], value);
    }

    /// <summary>Bytes that values of its outcomes take up, those that are left included.</summary>
    public uint KeptBytes
    {
        get => BinaryPrimitives.ReadUInt32LittleEndian(_bytes[KeptOffset..]);
        set => BinaryPrimitives.WriteUInt32LittleEndian(_bytes[KeptOffset..], value);
    }

    /// <summary>Confirmed numbers whose values are still to be freed.</summary>
    public int Left
    {
        get => BinaryPrimitives.ReadUInt16LittleEndian(_bytes[LeftOffset..]);
        private set => BinaryPrimitives.WriteUInt16LittleEndian(_bytes[LeftOffset..], checked((ushort)value));
    }

    /// <summary>Numbers from <see cref="Low"/> on that have a place.</summary>
    public int Room => (_bytes.Length - HeaderBytes) / PlaceBytes;

    /// <summary>The place from which the next value that is left is looked for.</summary>
    private int Next
    {
        get => BinaryPrimitives.ReadUInt16LittleEndian(_bytes[NextOffset..]);
        set => BinaryPrimitives.WriteUInt16LittleEndian(_bytes[NextOffset..], (ushort)value);
    }

    private Span<byte> Places => _bytes[HeaderBytes..];

    /// <summary>Bytes of a window with so much room.</summary>
    public static int BytesOf(int room) => HeaderBytes + (room * PlaceBytes);

    /// <summary>
    /// True when the number was carried out and its outcome is still here. It must be within the room.
    /// </summary>
    public bool IsTaken(ulong number) => Place(number)[0] != 0;

    /// <summary>The check of the command that had the number.</summary>
    public uint Check(ulong number) => BinaryPrimitives.ReadUInt32LittleEndian(Place(number)[4..]);

    /// <summary>The outcome has a value, which is kept elsewhere.</summary>
    public bool HasValue(ulong number) => (Place(number)[1] & FlagValue) != 0;

    /// <summary>The outcome without its value.</summary>
    public Outcome Read(ulong number)
    {
        ReadOnlySpan<byte> place = Place(number);
        return new Outcome(
            (OutcomeStatus)place[0],
            BinaryPrimitives.ReadInt64LittleEndian(place[8..]),
            BinaryPrimitives.ReadInt64LittleEndian(place[16..]))
        {
            HasValue = (place[1] & FlagValue) != 0,
            ValueIsNull = (place[1] & FlagNull) != 0,
        };
    }

    /// <summary>Writes an outcome without its value to a place that is empty.</summary>
    public void Write(ulong number, uint check, scoped in Outcome outcome)
    {
        Span<byte> place = Place(number);
        InvariantException.Require(place[0] == 0 && outcome.Status != 0, "an outcome is written to an empty place");
        place[0] = (byte)outcome.Status;
        place[1] = (byte)((outcome.HasValue ? FlagValue : 0) | (outcome.ValueIsNull ? FlagNull : 0));
        BinaryPrimitives.WriteUInt16LittleEndian(place[2..], 0);
        BinaryPrimitives.WriteUInt32LittleEndian(place[4..], check);
        BinaryPrimitives.WriteInt64LittleEndian(place[8..], outcome.Revision);
        BinaryPrimitives.WriteInt64LittleEndian(place[16..], outcome.Number);
    }

    /// <summary>
    /// Forgets the outcomes of the numbers from <see cref="Low"/> up to <paramref name="end"/>, which is within the
    /// room; what they added to the digest. Their values are left: the number stays in the place until somebody takes
    /// it.
    /// </summary>
    [MethodImpl(MethodImplOptions.AggressiveOptimization)]
    public ulong Forget(ulong id, ulong end)
    {
        ulong sum = 0;
        int left = 0;
        for (ulong number = Low; number < end;)
        {
            // In one piece up to the end of the ring: a window of thousands of outcomes may be confirmed by one
            // command.
            Span<byte> rest = Places[((int)(number & (uint)(Room - 1)) * PlaceBytes)..];
            for (; number < end && rest.Length > 0; number++, rest = rest[PlaceBytes..])
            {
                Span<byte> place = rest[..PlaceBytes];
                if (place[0] == 0)
                {
                    continue;
                }

                sum = unchecked(sum + WindowDigest.OfPlace(id, number, place));
                bool hasValue = (place[1] & FlagValue) != 0;
                place.Clear();
                if (hasValue)
                {
                    place[1] = FlagLeft;
                    BinaryPrimitives.WriteUInt64LittleEndian(place[NumberOffset..], number);
                    left++;
                }
            }
        }

        Left += left;
        return sum;
    }

    /// <summary>Takes one of the numbers whose values are left; false when there is none.</summary>
    public bool TryTakeLeft(out ulong number)
    {
        number = 0;
        if (Left == 0)
        {
            return false;
        }

        int next = Next;
        int looked = 0;
        while ((Places[(next * PlaceBytes) + 1] & FlagLeft) == 0)
        {
            InvariantException.Require(++looked < Room, "as many values are left as are counted");
            next = (next + 1) & (Room - 1);
        }

        number = TakeLeft(Places.Slice(next * PlaceBytes, PlaceBytes));
        Next = Left == 0 ? 0 : next;
        return true;
    }

    /// <summary>
    /// Takes the number whose value is left in the place of this one, which is about to be written; false when none is.
    /// </summary>
    public bool TryTakeLeftAt(ulong place, out ulong number)
    {
        bool isLeft = (Place(place)[1] & FlagLeft) != 0;
        number = isLeft ? TakeLeft(Place(place)) : 0;
        Next = Left == 0 ? 0 : Next;
        return isLeft;
    }

    /// <summary>Moves everything to a window with more room, which is all zeros.</summary>
    public void MoveTo(SessionWindow larger)
    {
        InvariantException.Require(
            larger.Room > Room && BitOperations.IsPow2(larger.Room), "a window grows to a power of two");
        larger.Low = Low;
        larger.High = High;
        larger.KeptBytes = KeptBytes;
        larger.Left = Left;
        larger.Next = Next;
        for (int i = 0; i < Room; i++)
        {
            ulong number = Low + (uint)i;
            Place(number).CopyTo(larger.Place(number));
        }
    }

    /// <summary>What the numbers at the front add to the digest of a session.</summary>
    public ulong HeaderDigest(ulong id) => WindowDigest.OfHeader(id, _bytes);

    /// <summary>What a number's outcome adds to it; 0 for an empty place.</summary>
    public ulong PlaceDigest(ulong id, ulong number) => WindowDigest.OfPlace(id, number, Place(number));

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private Span<byte> Place(ulong number) =>
        _bytes.Slice(HeaderBytes + ((int)(number & (uint)(Room - 1)) * PlaceBytes), PlaceBytes);

    private ulong TakeLeft(Span<byte> place)
    {
        ulong number = BinaryPrimitives.ReadUInt64LittleEndian(place[NumberOffset..]);
        InvariantException.Require(number < Low && Left > 0, "only values of confirmed numbers are left");
        place.Clear();
        Left--;
        return number;
    }
}

/// <summary>
/// The rows that sessions are made of: <c>0xFF S u64 session</c> and <c>0xFF V u64 session u64 number</c>, a value that
/// an outcome carries. Knows no rules. Owned by one <see cref="SessionTable"/>; not thread-safe.
/// </summary>
internal sealed class SessionRows(KeyStore store)
{
    private const int ValueNameBytes = SystemRowKind.SessionNameBytes + sizeof(ulong);

    /// <summary>A session's row, its place among the others and its share of the hash table.</summary>
    private const int RowBytes = 48 + 16 + 6;

    /// <summary>Bytes that a row takes up.</summary>
    public long BytesOf(Row row) => RowBytes + SizeClasses.BytesOf(SizeClasses.Of(store.Keys[row].BlockLength));

    /// <summary>True for a row that belongs to a session, itself or a value.</summary>
    public bool IsAny(Row row)
    {
        ref readonly KeyEntry entry = ref store.Keys[row];
        return (entry.Flags & KeyEntryFlags.System) != 0
            && SystemRowKind.Of(store.Keys.Key(in entry)) is { Owner: CommandTable.Sessions };
    }

    /// <summary>Row of a session; 0 when there is none.</summary>
    public Row Find(ulong id)
    {
        Span<byte> name = stackalloc byte[SystemRowKind.SessionNameBytes];
        WriteName(name, id);
        return store.System.Find(name);
    }

    /// <summary>Adds a session that remembers nothing.</summary>
    public Row Create(ulong id, ulong low)
    {
        Span<byte> name = stackalloc byte[SystemRowKind.SessionNameBytes];
        WriteName(name, id);
        Span<byte> value = stackalloc byte[SessionWindow.HeaderBytes];
        value.Clear();
        new SessionWindow(value).Low = low;
        return store.System.Create(SystemRowKind.Session, name, value);
    }

    /// <summary>Row of the value that a number's outcome carries; it must be there.</summary>
    public Row FindValue(ulong id, ulong number)
    {
        Span<byte> name = stackalloc byte[ValueNameBytes];
        WriteValueName(name, id, number);
        Row row = store.System.Find(name);
        InvariantException.Require(!row.IsNone, "a remembered value is there");
        return row;
    }

    /// <summary>Keeps the value that a number's outcome carries.</summary>
    public Row CreateValue(ulong id, ulong number, ReadOnlySpan<byte> value)
    {
        Span<byte> name = stackalloc byte[ValueNameBytes];
        WriteValueName(name, id, number);
        return store.System.Create(SystemRowKind.KeptValue, name, value);
    }

    private static void WriteName(Span<byte> name, ulong id)
    {
        SystemRowKind.Session.WritePrefix(name);
        BinaryPrimitives.WriteUInt64LittleEndian(name[SystemRowKind.PrefixBytes..], id);
    }

    private static void WriteValueName(Span<byte> name, ulong id, ulong number)
    {
        SystemRowKind.KeptValue.WritePrefix(name);
        BinaryPrimitives.WriteUInt64LittleEndian(name[SystemRowKind.PrefixBytes..], id);
        BinaryPrimitives.WriteUInt64LittleEndian(name[SystemRowKind.SessionNameBytes..], number);
    }
}

/// <summary>
/// What tells a command apart from others that wrongly carry its number: every field that says what is to be done, each
/// at a place of its own. Stored with outcomes, so the hash is a public one. Stateless.
/// </summary>
internal static class CommandDigest
{
    private const ulong Odd = 0x9E3779B185EBCA87;

    public static uint Of(scoped in Command command)
    {
        ulong fields = ((ulong)(command.Flags & ~CommandFlags.Opening) << 40) | ((ulong)command.Kind << 32);
        fields = unchecked((fields * Odd) + (ulong)command.Number);
        fields = unchecked((fields * Odd) + (ulong)command.TtlMs);
        fields = unchecked((fields * Odd) + (ulong)command.ComparedRevision);
        ulong check = XxHash64.Hash(command.Value, XxHash64.Hash(command.Key, fields));
        check = command.Has(CommandFlags.IfValue) ? XxHash64.Hash(command.ComparedValue, check) : check;
        check = command.Has(CommandFlags.AtRevision)
            ? unchecked((check * Odd) + (ulong)command.AtRevision)
            : check;
        check = command.Has(CommandFlags.Fenced)
            ? XxHash64.Hash(command.FenceName, unchecked(check + ((ulong)command.FenceToken * Odd)))
            : check;
        return (uint)(check >> 32);
    }
}
