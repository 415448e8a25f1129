using Kahuna.Server.Storage.RocksDb;

namespace Kahuna.Server.Storage.Checkpoints;

/// <summary>How <see cref="RocksStateStore"/> uses RocksDB. Stateless.</summary>
internal static class RocksStateOptions
{
    // Nothing is written through the memtable; this is RocksDB's minimum.
    private const long WriteBufferBytes = 64 << 10;
    private const long BlockCacheBytes = 1L << 20;

    // Reads are long scans, so large blocks cost nothing, and the index, which stays in memory, is a quarter of the
    // usual size.
    private const int BlockBytes = 16 << 10;
    private const long ReadAheadBytes = 1L << 20;
    private const long SyncEachBytes = 1L << 20;

    // RocksDB's info log (the file LOG) gets only the options, at opening; errors come with the calls.
    private const int OptionsOnly = 5;

    // Many files must never stall a write.
    private const int Level0Unbounded = 1 << 20;

    /// <summary>Bytes that the manifest reserves; RocksDB's own choice.</summary>
    public const long ManifestReserve = 4L << 20;

    // The format that RocksDB 7.8 wrote, too.
    private const int TableFormat = 5;

    public static DbOptions ForDatabase(long manifestReserve = ManifestReserve) => new DbOptions()
        .SetCreateIfMissing()
        .SetParanoidChecks()
        .SetWriteBufferSize(WriteBufferBytes)
        .SetDisableAutoCompactions()
        .SetLevel0Triggers(Level0Unbounded, Level0Unbounded, Level0Unbounded)
        .SetMaxOpenFiles(-1)
        .SetCompression(Compression.No)
        .SetInfoLogLevel(OptionsOnly)
        .SetInfoLogFiles(count: 1)
        .SetBytesPerSync(SyncEachBytes)
        .SetManifestReserve(manifestReserve)
        .SetBlocks(BlockBytes, BlockCacheBytes, TableFormat);

    public static ReadOptions ForReading() =>
        new ReadOptions().SetVerifyChecksums(true).SetFillCache(false).SetReadaheadSize(ReadAheadBytes);
}
