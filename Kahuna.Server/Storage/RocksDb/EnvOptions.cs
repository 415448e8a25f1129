namespace Kahuna.Server.Storage.RocksDb;

/// <summary>How files outside the database are written; RocksDB's defaults. Not thread-safe.</summary>
internal sealed class EnvOptions() : NativeHandle(RocksDbNative.CreateEnvOptions())
{
    protected override bool ReleaseHandle()
    {
        RocksDbNative.DestroyEnvOptions(handle);
        return true;
    }
}
