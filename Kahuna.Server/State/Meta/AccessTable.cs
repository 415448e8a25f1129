using System.Buffers.Binary;
using Kahuna.Server.State.Rows;

namespace Kahuna.Server.State.Meta;

/// <summary>
/// The records about who may do what, in the rows of the meta group's store. It does not read them: a change names the
/// version that it is based on, and is made whole, or not at all. So its proposer has checked it against the
/// very records that it changes. Owned by one <see cref="MetaTable"/>; not thread-safe.
/// </summary>
/// <remarks>
/// <c>0xFF v: u64 version, then for each of the newest changes, the newest last, u64, u64 id</c>;
/// <c>0xFF a, u8 kind, name: the record</c>.
/// </remarks>
internal sealed class AccessTable(KeyStore store)
{
    /// <summary>Bytes of all records, with their names. A change that would need more is not made.</summary>
    public const long BytesMax = 16 << 20;

    private const int IdBytes = 16;
    private const int KindAt = SystemRowKind.PrefixBytes;
    private const int NameAt = KindAt + 1;

    private AccessRows? _rows;

    /// <summary>Makes a change, if nothing was changed since its version.</summary>
    public void Apply(MetaCommand asked)
    {
        AccessRows before = Rows();
        AccessRow[]? rows = AccessRowList.Read(asked.Rows.Span);
        if (rows is null || asked.Number != before.Version || BytesAfter(before, rows) > BytesMax)
        {
            return;
        }

        foreach (AccessRow row in rows)
        {
            Put(row);
        }

        Record(before, new AccessChangeId(asked.Incarnation, asked.Nonce));
        _rows = null;
    }

    /// <summary>All records. The same object while nothing changes.</summary>
    public AccessRows Rows()
    {
        if (_rows is not null)
        {
            return _rows;
        }

        Row versionRow = store.System.Find(SystemRowKind.AccessVersion.ToName());
        if (versionRow.IsNone)
        {
            return _rows = AccessRows.Empty;
        }

        ReadOnlySpan<byte> version = ValueOf(versionRow);
        List<AccessChangeId> recent = [];
        for (int at = sizeof(ulong); at + IdBytes <= version.Length; at += IdBytes)
        {
            recent.Add(new AccessChangeId(
                BinaryPrimitives.ReadUInt64LittleEndian(version[at..]),
                BinaryPrimitives.ReadUInt64LittleEndian(version[(at + sizeof(ulong))..])));
        }

        List<AccessRow> rows = [];
        RowSet recorded = store.System.Of(SystemRowKind.Access);
        for (Row row = recorded.Next(Row.First); !row.IsNone; row = recorded.Next(row.Next))
        {
            ReadOnlySpan<byte> name = store.Keys.Key(in store.Keys[row]);
            rows.Add(new AccessRow(name[KindAt], name[NameAt..].ToArray(), ValueOf(row).ToArray()));
        }

        return _rows = new AccessRows(BinaryPrimitives.ReadUInt64LittleEndian(version), recent, rows);
    }

    /// <summary>Bytes of the records when the rows are put.</summary>
    public static long BytesAfter(AccessRows before, IReadOnlyList<AccessRow> rows)
    {
        HashSet<(byte, string)> put = [.. rows.Select(KeyOf)];
        return rows.Sum(BytesOf) + before.Rows.Where(row => !put.Contains(KeyOf(row))).Sum(BytesOf);
    }

    private static (byte Kind, string Name) KeyOf(AccessRow row) => (row.Kind, Convert.ToHexString(row.Name));

    private static long BytesOf(AccessRow row) => row.Value is null ? 0 : row.Name.Length + row.Value.Length;

    private void Put(AccessRow row)
    {
        byte[] name = new byte[NameAt + row.Name.Length];
        SystemRowKind.Access.WritePrefix(name);
        name[KindAt] = row.Kind;
        row.Name.CopyTo(name.AsSpan(NameAt));
        Put(SystemRowKind.Access, name, row.Value);
    }

    private void Record(AccessRows before, AccessChangeId id)
    {
        AccessChangeId[] recent =
            [.. before.Recent.Skip(Math.Max(0, before.Recent.Count + 1 - AccessRows.RecentMax)), id];
        byte[] value = new byte[sizeof(ulong) + (recent.Length * IdBytes)];
        BinaryPrimitives.WriteUInt64LittleEndian(value, before.Version + 1);
        for (int i = 0; i < recent.Length; i++)
        {
            Span<byte> place = value.AsSpan(sizeof(ulong) + (i * IdBytes));
            BinaryPrimitives.WriteUInt64LittleEndian(place, recent[i].High);
            BinaryPrimitives.WriteUInt64LittleEndian(place[sizeof(ulong)..], recent[i].Low);
        }

        Put(SystemRowKind.AccessVersion, SystemRowKind.AccessVersion.ToName(), value);
    }

    private void Put(SystemRowKind kind, ReadOnlySpan<byte> name, byte[]? value)
    {
        Row row = store.System.Find(name);
        if (!row.IsNone && value?.Length == store.Keys[row].ValueLength)
        {
            store.System.Rewrite(row, value);
            return;
        }

        if (!row.IsNone)
        {
            store.System.Free(row);
        }

        if (value is not null)
        {
            store.System.Create(kind, name, value);
        }
    }

    private ReadOnlySpan<byte> ValueOf(Row row) => store.Keys.Value(in store.Keys[row]);
}

/// <summary>
/// The rows of one change, as a command has them: <c>u8 kind, u16 length of the name, u32 length of the value plus 1, 0
/// for a deletion, name, value</c> each, little-endian. Stateless.
/// </summary>
internal static class AccessRowList
{
    private const int HeaderBytes = 7;

    /// <summary>The rows; null when the bytes are none, or are too many or too long.</summary>
    public static AccessRow[]? Read(ReadOnlySpan<byte> source)
    {
        List<AccessRow> rows = [];
        while (!source.IsEmpty)
        {
            if (source.Length < HeaderBytes || rows.Count == AccessRow.RowsMax)
            {
                return null;
            }

            byte kind = source[0];
            int nameLength = BinaryPrimitives.ReadUInt16LittleEndian(source[1..]);
            long valueLength = BinaryPrimitives.ReadUInt32LittleEndian(source[3..]) - 1L;
            source = source[HeaderBytes..];
            if (nameLength is 0 or > AccessRow.NameBytesMax
                || valueLength > AccessRow.ValueBytesMax
                || nameLength + Math.Max(valueLength, 0) > source.Length)
            {
                return null;
            }

            byte[] name = source[..nameLength].ToArray();
            byte[]? value = valueLength < 0 ? null : source.Slice(nameLength, (int)valueLength).ToArray();
            rows.Add(new AccessRow(kind, name, value));
            source = source[(nameLength + (value?.Length ?? 0))..];
        }

        return rows.Count == 0 ? null : [.. rows];
    }

    /// <summary>Encodes rows that are within the limits.</summary>
    public static byte[] Write(IReadOnlyList<AccessRow> rows)
    {
        byte[] bytes = new byte[rows.Sum(static row => HeaderBytes + row.Name.Length + (row.Value?.Length ?? 0))];
        Span<byte> left = bytes;
        foreach (AccessRow row in rows)
        {
            left[0] = row.Kind;
            BinaryPrimitives.WriteUInt16LittleEndian(left[1..], checked((ushort)row.Name.Length));
            BinaryPrimitives.WriteUInt32LittleEndian(left[3..], row.Value is null ? 0 : (uint)row.Value.Length + 1);
            row.Name.CopyTo(left[HeaderBytes..]);
            row.Value?.CopyTo(left[(HeaderBytes + row.Name.Length)..]);
            left = left[(HeaderBytes + row.Name.Length + (row.Value?.Length ?? 0))..];
        }

        return bytes;
    }
}
