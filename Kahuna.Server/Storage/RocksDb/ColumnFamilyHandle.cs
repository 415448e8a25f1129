namespace Kahuna.Server.Storage.RocksDb;

/// <summary>One column family of an open database, which owns it and ends it first.</summary>
internal sealed class ColumnFamilyHandle(nint created) : NativeHandle(created)
{
    protected override bool ReleaseHandle()
    {
        RocksDbNative.DestroyColumnFamily(handle);
        return true;
    }
}
