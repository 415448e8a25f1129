namespace Kahuna.Server.Storage.RocksDb;

/// <summary>Changes that take effect together or not at all. Keys and values are copied. Not thread-safe.</summary>
internal sealed unsafe class WriteBatch() : NativeHandle(RocksDbNative.CreateWriteBatch())
{
    /// <summary>Changes in it.</summary>
    public int Count => RocksDbNative.CountWriteBatch(this);

    public WriteBatch Put(ReadOnlySpan<byte> key, ReadOnlySpan<byte> value, ColumnFamilyHandle family)
    {
        fixed (byte* keyStart = key, valueStart = value)
        {
            RocksDbNative.PutInBatch(this, family, keyStart, (nuint)key.Length, valueStart, (nuint)value.Length);
        }

        return this;
    }

    public WriteBatch Delete(ReadOnlySpan<byte> key, ColumnFamilyHandle family)
    {
        fixed (byte* keyStart = key)
        {
            RocksDbNative.DeleteInBatch(this, family, keyStart, (nuint)key.Length);
        }

        return this;
    }

    /// <summary>Empties it for the next use.</summary>
    public WriteBatch Clear()
    {
        RocksDbNative.ClearWriteBatch(this);
        return this;
    }

    protected override bool ReleaseHandle()
    {
        RocksDbNative.DestroyWriteBatch(handle);
        return true;
    }
}
