using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage.RocksDb;

/// <summary>
/// An open database: a thin cover of RocksDB's C interface with the method names of RocksDbSharp. Every error is a <see cref="RocksDbException"/> with RocksDB's text.
/// Any thread; <see cref="SafeHandle.Dispose()"/> waits for nothing, but iterators and snapshots keep the database open until they end.
/// </summary>
internal sealed unsafe class RocksDatabase : NativeHandle
{
    private readonly Dictionary<string, ColumnFamilyHandle> _families = [];

    private RocksDatabase(nint opened, IReadOnlyList<string> names, ReadOnlySpan<nint> families)
        : base(opened)
    {
        for (int i = 0; i < names.Count; i++)
        {
            _families.Add(names[i], new ColumnFamilyHandle(families[i]));
        }
    }

    /// <summary>Opens the database in a directory with all its column families, "default" among them.</summary>
    /// <exception cref="RocksDbException">It cannot be opened: locked by another process, damaged, or with column families that are not named.</exception>
    /// <exception cref="DllNotFoundException">There is no library (<see cref="RocksDbLibrary.IsAvailable"/>).</exception>
    public static RocksDatabase Open(DbOptions options, string path, params IReadOnlyList<string> columnFamilies)
    {
        int count = columnFamilies.Count;
        byte** names = stackalloc byte*[count];
        nint* familyOptions = stackalloc nint[count];
        nint* families = stackalloc nint[count];
        bool held = false;
        options.DangerousAddRef(ref held);
        try
        {
            for (int i = 0; i < count; i++)
            {
                names[i] = (byte*)Marshal.StringToCoTaskMemUTF8(columnFamilies[i]);
                familyOptions[i] = options.DangerousGetHandle();
            }

            nint opened = RocksDbNative.OpenColumnFamilies(options, path, count, names, familyOptions, families, out nint error);
            RocksDbException.ThrowIf(error);
            return new RocksDatabase(opened, columnFamilies, new ReadOnlySpan<nint>(families, count));
        }
        finally
        {
            for (int i = 0; i < count; i++)
            {
                Marshal.FreeCoTaskMem((nint)names[i]);
            }

            options.DangerousRelease();
        }
    }

    public ColumnFamilyHandle GetColumnFamily(string name) => _families[name];

    public void Write(WriteBatch batch, WriteOptions options)
    {
        RocksDbNative.Write(this, options, batch, out nint error);
        RocksDbException.ThrowIf(error);
    }

    /// <summary>The value of a key; null when there is none.</summary>
    public byte[]? Get(ReadOnlySpan<byte> key, ColumnFamilyHandle family, ReadOptions options)
    {
        fixed (byte* start = key)
        {
            nint slice = RocksDbNative.GetPinned(this, options, family, start, (nuint)key.Length, out nint error);
            RocksDbException.ThrowIf(error);
            if (slice == 0)
            {
                return null;
            }

            byte* value = RocksDbNative.PinnedValue(slice, out nuint length);
            byte[] copy = new ReadOnlySpan<byte>(value, checked((int)length)).ToArray();
            RocksDbNative.DestroyPinned(slice);
            return copy;
        }
    }

    /// <summary>Writes what a column family has in memory to a file, and syncs it.</summary>
    public void Flush(ColumnFamilyHandle family, FlushOptions options)
    {
        RocksDbNative.Flush(this, options, family, out nint error);
        RocksDbException.ThrowIf(error);
    }

    public Iterator NewIterator(ColumnFamilyHandle family, ReadOptions options) => new(this, family, options);

    public Snapshot CreateSnapshot() => new(this);

    /// <summary>A property such as "rocksdb.total-sst-files-size"; null when RocksDB does not know it.</summary>
    public string? GetProperty(string name)
    {
        nint text = RocksDbNative.PropertyValue(this, name);
        if (text == 0)
        {
            return null;
        }

        string? value = Marshal.PtrToStringUTF8(text);
        RocksDbNative.Free(text);
        return value;
    }

    protected override bool ReleaseHandle()
    {
        foreach (ColumnFamilyHandle family in _families.Values)
        {
            family.Dispose();
        }

        RocksDbNative.Close(handle);
        return true;
    }
}
