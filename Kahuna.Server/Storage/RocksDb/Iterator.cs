namespace Kahuna.Server.Storage.RocksDb;

/// <summary>
/// Walks a column family in key order, as it was when the iterator was created; its files stay until the iterator is
/// disposed. Keeps the database open. Not thread-safe.
/// </summary>
internal sealed unsafe class Iterator : NativeHandle
{
    private readonly RocksDatabase _database;

    public Iterator(RocksDatabase database, ColumnFamily family, ReadOptions options)
        : base(RocksDbNative.CreateIterator(database, options, family))
    {
        _database = database;
        bool held = false;
        database.DangerousAddRef(ref held);
    }

    /// <summary>The current key, valid until the iterator moves.</summary>
    public ReadOnlySpan<byte> Key
    {
        get
        {
            byte* start = RocksDbNative.IteratorKey(this, out nuint length);
            return new ReadOnlySpan<byte>(start, checked((int)length));
        }
    }

    /// <summary>The current value, valid until the iterator moves.</summary>
    public ReadOnlySpan<byte> Value
    {
        get
        {
            byte* start = RocksDbNative.IteratorValue(this, out nuint length);
            return new ReadOnlySpan<byte>(start, checked((int)length));
        }
    }

    public Iterator SeekToFirst()
    {
        RocksDbNative.SeekToFirst(this);
        return this;
    }

    /// <summary>Moves to the first key at or above this one.</summary>
    public Iterator Seek(ReadOnlySpan<byte> key)
    {
        fixed (byte* start = key)
        {
            RocksDbNative.Seek(this, start, (nuint)key.Length);
        }

        return this;
    }

    public Iterator Next()
    {
        RocksDbNative.Next(this);
        return this;
    }

    /// <summary>True at a key, false after the last one.</summary>
    /// <exception cref="RocksDbException">This is not the end: a read failed.</exception>
    public bool Valid()
    {
        if (RocksDbNative.IsValid(this) != 0)
        {
            return true;
        }

        RocksDbNative.IteratorError(this, out nint error);
        RocksDbException.ThrowIf(error);
        return false;
    }

    protected override bool ReleaseHandle()
    {
        RocksDbNative.DestroyIterator(handle);
        _database.DangerousRelease();
        return true;
    }
}
