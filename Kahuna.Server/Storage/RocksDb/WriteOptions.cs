namespace Kahuna.Server.Storage.RocksDb;

/// <summary>How is written.</summary>
internal sealed class WriteOptions() : NativeHandle(RocksDbNative.CreateWriteOptions())
{
    /// <summary>Without RocksDB's own log: what was written is durable after a flush only.</summary>
    public WriteOptions DisableWal(bool value)
    {
        RocksDbNative.DisableWal(this, value ? 1 : 0);
        return this;
    }

    protected override bool ReleaseHandle()
    {
        RocksDbNative.DestroyWriteOptions(handle);
        return true;
    }
}
