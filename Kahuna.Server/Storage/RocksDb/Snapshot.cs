namespace Kahuna.Server.Storage.RocksDb;

/// <summary>The database as it was at one moment, for as long as this lives. Keeps the database open.</summary>
internal sealed class Snapshot : IDisposable
{
    private readonly RocksDatabase _database;
    private nint _number;

    public Snapshot(RocksDatabase database)
    {
        _database = database;
        bool held = false;
        database.DangerousAddRef(ref held);
        _number = RocksDbNative.CreateSnapshot(database);
    }

    internal nint Number => _number;

    public void Dispose()
    {
        nint number = Interlocked.Exchange(ref _number, 0);
        if (number != 0)
        {
            RocksDbNative.ReleaseSnapshot(_database, number);
            _database.DangerousRelease();
        }
    }
}
