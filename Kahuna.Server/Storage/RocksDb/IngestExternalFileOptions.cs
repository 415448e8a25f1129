namespace Kahuna.Server.Storage.RocksDb;

/// <summary>Options for ingesting files. Set before use; not thread-safe.</summary>
internal sealed class IngestExternalFileOptions() : NativeHandle(RocksDbNative.CreateIngestOptions())
{
    /// <summary>
    /// Files are linked into the database's directory and lose their old names, instead of being copied.
    /// </summary>
    public IngestExternalFileOptions SetMoveFiles(bool value)
    {
        RocksDbNative.SetMoveFiles(this, value ? (byte)1 : (byte)0);
        return this;
    }

    protected override bool ReleaseHandle()
    {
        RocksDbNative.DestroyIngestOptions(handle);
        return true;
    }
}
