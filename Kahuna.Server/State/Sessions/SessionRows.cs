using System.Buffers.Binary;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;

namespace Kahuna.Server.State.Sessions;

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
    public long BytesOf(int row) => RowBytes + SizeClasses.BytesOf(SizeClasses.Of(store.Keys[row].BlockLength));

    /// <summary>True for a row that belongs to a session, itself or a value.</summary>
    public bool IsAny(int row)
    {
        ref readonly KeyEntry entry = ref store.Keys[row];
        return (entry.Flags & KeyEntryFlags.System) != 0
            && SystemRowKind.Of(store.Keys.Key(in entry)) is { Owner: CommandTable.Sessions };
    }

    /// <summary>Row of a session; 0 when there is none.</summary>
    public int Find(ulong id)
    {
        Span<byte> name = stackalloc byte[SystemRowKind.SessionNameBytes];
        WriteName(name, id);
        return store.System.Find(name);
    }

    /// <summary>Adds a session that remembers nothing.</summary>
    public int Create(ulong id, ulong low)
    {
        Span<byte> name = stackalloc byte[SystemRowKind.SessionNameBytes];
        WriteName(name, id);
        Span<byte> value = stackalloc byte[SessionWindow.HeaderBytes];
        value.Clear();
        new SessionWindow(value).Low = low;
        return store.System.Create(SystemRowKind.Session, name, value);
    }

    /// <summary>Row of the value that a number's outcome carries; it must be there.</summary>
    public int FindValue(ulong id, ulong number)
    {
        Span<byte> name = stackalloc byte[ValueNameBytes];
        WriteValueName(name, id, number);
        int row = store.System.Find(name);
        InvariantException.Require(row != 0, "a remembered value is there");
        return row;
    }

    /// <summary>Keeps the value that a number's outcome carries.</summary>
    public int CreateValue(ulong id, ulong number, ReadOnlySpan<byte> value)
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
