namespace Kahuna.Server.Storage.RocksDb;

/// <summary>Compression types of rocksdb/c.h.</summary>
internal enum Compression
{
    No = 0,
    Snappy = 1,
    Lz4 = 4,
    Zstd = 7,
}

/// <summary>Options of a database. Set before <see cref="RocksDatabase.Open"/>; not thread-safe.</summary>
internal sealed class DbOptions() : NativeHandle(RocksDbNative.CreateOptions())
{
    /// <summary>Creates a database in an empty directory.</summary>
    public DbOptions SetCreateIfMissing(bool value = true)
    {
        RocksDbNative.SetCreateIfMissing(this, Byte(value));
        return this;
    }

    /// <summary>Damage stops the database instead of being skipped.</summary>
    public DbOptions SetParanoidChecks(bool value = true)
    {
        RocksDbNative.SetParanoidChecks(this, Byte(value));
        return this;
    }

    /// <summary>Bytes of a memtable before it is written to a file.</summary>
    public DbOptions SetWriteBufferSize(long bytes)
    {
        RocksDbNative.SetWriteBufferSize(this, (nuint)bytes);
        return this;
    }

    /// <summary>-1 keeps all files open.</summary>
    public DbOptions SetMaxOpenFiles(int count)
    {
        RocksDbNative.SetMaxOpenFiles(this, count);
        return this;
    }

    public DbOptions SetCompression(Compression compression)
    {
        RocksDbNative.SetCompression(this, (int)compression);
        return this;
    }

    /// <summary>
    /// Level of RocksDB's info log (the file LOG, not its write-ahead log): 0 debug to 4 fatal, 5 only the options.
    /// </summary>
    public DbOptions SetInfoLogLevel(int level)
    {
        RocksDbNative.SetInfoLogLevel(this, level);
        return this;
    }

    /// <summary>Info log files to keep; each opening begins one.</summary>
    public DbOptions SetInfoLogFiles(int count)
    {
        RocksDbNative.SetKeepLogFileNum(this, (nuint)count);
        return this;
    }

    /// <summary>Files are written out in pieces of this size, so that the final sync has little left to do.</summary>
    public DbOptions SetBytesPerSync(long bytes)
    {
        RocksDbNative.SetBytesPerSync(this, (ulong)bytes);
        return this;
    }

    /// <summary>Bytes that the manifest preallocates, so that it can record changes on a full disk, too.</summary>
    public DbOptions SetManifestReserve(long bytes)
    {
        RocksDbNative.SetManifestPreallocationSize(this, (nuint)bytes);
        return this;
    }

    /// <summary>All reads bypass the page cache. The file system must support it.</summary>
    public DbOptions SetUseDirectReads(bool value = true)
    {
        RocksDbNative.SetUseDirectReads(this, Byte(value));
        return this;
    }

    /// <summary>
    /// Bytes of a block (the unit of reading and of checksums), bytes of cached blocks, and the version of the file
    /// format.
    /// </summary>
    public DbOptions SetBlocks(int bytes, long cacheBytes, int format)
    {
        nint cache = RocksDbNative.CreateLruCache((nuint)cacheBytes);
        nint table = RocksDbNative.CreateTableOptions();
        RocksDbNative.SetBlockCache(table, cache);
        RocksDbNative.SetBlockSize(table, (nuint)bytes);
        RocksDbNative.SetFormatVersion(table, format);
        RocksDbNative.SetBlockBasedTableFactory(this, table);
        RocksDbNative.DestroyTableOptions(table);
        RocksDbNative.DestroyCache(cache);
        return this;
    }

    /// <summary>Files are compacted only on request.</summary>
    public DbOptions SetDisableAutoCompactions(bool value = true)
    {
        RocksDbNative.SetDisableAutoCompactions(this, Byte(value));
        return this;
    }

    /// <summary>Numbers of level-0 files at which to compact, to slow writes down, and to stop them.</summary>
    public DbOptions SetLevel0Triggers(int compact, int slowDown, int stop)
    {
        RocksDbNative.SetLevel0CompactionTrigger(this, compact);
        RocksDbNative.SetLevel0SlowdownTrigger(this, slowDown);
        RocksDbNative.SetLevel0StopTrigger(this, stop);
        return this;
    }

    protected override bool ReleaseHandle()
    {
        RocksDbNative.DestroyOptions(handle);
        return true;
    }

    private static byte Byte(bool value) => value ? (byte)1 : (byte)0;
}
