namespace Kahuna.Server.Storage.RocksDb;

/// <summary>
/// A column family of an open database, with its own keys and files. Dropping it removes them. Owned by the database.
/// </summary>
internal sealed class ColumnFamily : NativeHandle
{
    private readonly RocksDatabase _database;

    public ColumnFamily(RocksDatabase database, string name, nint opened)
        : base(opened)
    {
        _database = database;
        Name = name;
        bool held = false;
        database.DangerousAddRef(ref held);
    }

    public string Name { get; }

    protected override bool ReleaseHandle()
    {
        RocksDbNative.DestroyColumnFamily(handle);
        _database.DangerousRelease();
        return true;
    }
}
