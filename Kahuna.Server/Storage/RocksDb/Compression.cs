namespace Kahuna.Server.Storage.RocksDb;

/// <summary>Numbers of rocksdb/c.h.</summary>
internal enum Compression
{
    No = 0,
    Snappy = 1,
    Lz4 = 4,
    Zstd = 7,
}
