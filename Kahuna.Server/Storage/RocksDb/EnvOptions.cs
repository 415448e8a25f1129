namespace Kahuna.Server.Storage.RocksDb;

/// <summary>Options for files outside the database: RocksDB's defaults. Not thread-safe.</summary>
internal sealed class EnvOptions() : NativeHandle(RocksDbNative.CreateEnvOptions())
{
    protected override bool ReleaseHandle()
    {
        RocksDbNative.DestroyEnvOptions(handle);
        return true;
    }
}
