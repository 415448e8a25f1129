using System.Buffers.Binary;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.State.Sessions;

/// <summary>The rows that sessions are made of: <c>0xFF S u64 session</c> and <c>0xFF V u64 session u64 number</c>, a value that an outcome carries. Knows no rules. Owned by one <see cref="SessionTable"/>; not thread-safe.</summary>
internal sealed class SessionRows(KeyStore store)
{
    private const byte Reserved = 0xFF;
    private const byte Session = (byte)'S';
    private const byte KeptValue = (byte)'V';
    private const int ValueNameBytes = 18;

    /// <summary>A session's row, its place among the others and its share of the hash table.</summary>
    private const int RowBytes = 48 + 16 + 6;

    /// <summary>Bytes that a row takes up.</summary>
    public long BytesOf(int row) => RowBytes + SizeClasses.BytesOf(SizeClasses.Of(store.Keys[row].BlockLength));

    /// <summary>True for a row that belongs to a session, itself or a value.</summary>
    public bool IsAny(int row)
    {
        ref readonly KeyEntry entry = ref store.Keys[row];
        return entry.IsSession || ((entry.Flags & KeyEntryFlags.System) != 0 && entry.KeyLength == ValueNameBytes && store.Keys.Key(in entry)[1] == KeptValue);
    }

    /// <summary>Row of a session; 0 when there is none.</summary>
    public int Find(ulong id)
    {
        Span<byte> name = stackalloc byte[SessionTable.NameBytes];
        WriteName(name, id);
        return store.Keys.Find(name, store.Keys.HashOf(name));
    }

    /// <summary>Adds a session that remembers nothing.</summary>
    public int Create(ulong id, ulong low)
    {
        Span<byte> name = stackalloc byte[SessionTable.NameBytes];
        WriteName(name, id);
        Span<byte> value = stackalloc byte[SessionWindow.HeaderBytes];
        value.Clear();
        new SessionWindow(value).Low = low;
        return store.System.Create(name, value, KeyEntryFlags.Session);
    }

    /// <summary>Row of the value that a number's outcome carries; it must be there.</summary>
    public int FindValue(ulong id, ulong number)
    {
        Span<byte> name = stackalloc byte[ValueNameBytes];
        WriteValueName(name, id, number);
        int row = store.Keys.Find(name, store.Keys.HashOf(name));
        InvariantException.Require(row != 0, "a remembered value is there");
        return row;
    }

    /// <summary>Keeps the value that a number's outcome carries.</summary>
    public int CreateValue(ulong id, ulong number, ReadOnlySpan<byte> value)
    {
        Span<byte> name = stackalloc byte[ValueNameBytes];
        WriteValueName(name, id, number);
        return store.System.Create(name, value, KeyEntryFlags.None);
    }

    private static void WriteName(Span<byte> name, ulong id)
    {
        name[0] = Reserved;
        name[1] = Session;
        BinaryPrimitives.WriteUInt64LittleEndian(name[2..], id);
    }

    private static void WriteValueName(Span<byte> name, ulong id, ulong number)
    {
        name[0] = Reserved;
        name[1] = KeptValue;
        BinaryPrimitives.WriteUInt64LittleEndian(name[2..], id);
        BinaryPrimitives.WriteUInt64LittleEndian(name[10..], number);
    }
}
