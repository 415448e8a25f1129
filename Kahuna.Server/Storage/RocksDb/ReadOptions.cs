namespace Kahuna.Server.Storage.RocksDb;

/// <summary>Options of reads. Set before use; not thread-safe.</summary>
internal sealed class ReadOptions() : NativeHandle(RocksDbNative.CreateReadOptions())
{
    public ReadOptions SetVerifyChecksums(bool value)
    {
        RocksDbNative.SetVerifyChecksums(this, value ? (byte)1 : (byte)0);
        return this;
    }

    /// <summary>Whether blocks stay in the block cache; pointless for one scan.</summary>
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
