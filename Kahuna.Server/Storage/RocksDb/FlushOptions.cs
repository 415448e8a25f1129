namespace Kahuna.Server.Storage.RocksDb;

/// <summary>How is flushed.</summary>
internal sealed class FlushOptions() : NativeHandle(RocksDbNative.CreateFlushOptions())
{
    /// <summary>The call returns when the data is durable.</summary>
    public FlushOptions SetWaitForFlush(bool value)
    {
        RocksDbNative.SetWaitForFlush(this, value ? (byte)1 : (byte)0);
        return this;
    }

    protected override bool ReleaseHandle()
    {
        RocksDbNative.DestroyFlushOptions(handle);
        return true;
    }
}
