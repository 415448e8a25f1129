namespace Kahuna.Server.Storage.RocksDb;

/// <summary>How is read. Not thread-safe while it is filled in.</summary>
internal sealed class ReadOptions() : NativeHandle(RocksDbNative.CreateReadOptions())
{
    public ReadOptions SetVerifyChecksums(bool value)
    {
        RocksDbNative.SetVerifyChecksums(this, value ? (byte)1 : (byte)0);
        return this;
    }

    /// <summary>Whether what is read stays in the block cache; not for reading everything once.</summary>
    public ReadOptions SetFillCache(bool value)
    {
        RocksDbNative.SetFillCache(this, value ? (byte)1 : (byte)0);
        return this;
    }

    public ReadOptions SetReadaheadSize(long bytes)
    {
        RocksDbNative.SetReadaheadSize(this, (nuint)bytes);
        return this;
    }

    protected override bool ReleaseHandle()
    {
        RocksDbNative.DestroyReadOptions(handle);
        return true;
    }
}
