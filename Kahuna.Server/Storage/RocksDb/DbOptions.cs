namespace Kahuna.Server.Storage.RocksDb;

/// <summary>How a database is opened. Fill it in before <see cref="RocksDatabase.Open"/>; not thread-safe.</summary>
internal sealed class DbOptions() : NativeHandle(RocksDbNative.CreateOptions())
{
    /// <summary>An empty directory becomes a database.</summary>
    public DbOptions SetCreateIfMissing(bool value = true)
    {
        RocksDbNative.SetCreateIfMissing(this, Byte(value));
        return this;
    }

    public DbOptions SetCreateMissingColumnFamilies(bool value = true)
    {
        RocksDbNative.SetCreateMissingColumnFamilies(this, Byte(value));
        return this;
    }

    /// <summary>When RocksDB flushes by itself, what all column families have in memory becomes durable together. A flush that is asked for takes one family all the same.</summary>
    public DbOptions SetAtomicFlush(bool value = true)
    {
        RocksDbNative.SetAtomicFlush(this, Byte(value));
        return this;
    }

    /// <summary>Damage that is found stops the database instead of being passed by.</summary>
    public DbOptions SetParanoidChecks(bool value = true)
    {
        RocksDbNative.SetParanoidChecks(this, Byte(value));
        return this;
    }

    /// <summary>Bytes that one column family gathers in memory before it writes a file.</summary>
    public DbOptions SetWriteBufferSize(long bytes)
    {
        RocksDbNative.SetWriteBufferSize(this, (nuint)bytes);
        return this;
    }

    public DbOptions SetMaxBackgroundJobs(int count)
    {
        RocksDbNative.SetMaxBackgroundJobs(this, count);
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

    /// <summary>RocksDB's own diary (the file LOG, not its write-ahead log): 0 debug to 4 fatal.</summary>
    public DbOptions SetInfoLogLevel(int level)
    {
        RocksDbNative.SetInfoLogLevel(this, level);
        return this;
    }

    /// <summary>Size and number of the diary's files.</summary>
    public DbOptions SetInfoLogFiles(long bytes, int count)
    {
        RocksDbNative.SetMaxLogFileSize(this, (nuint)bytes);
        RocksDbNative.SetKeepLogFileNum(this, (nuint)count);
        return this;
    }

    /// <summary>Files are written out in pieces of this size, so that a sync at their end has little left to do.</summary>
    public DbOptions SetBytesPerSync(long bytes)
    {
        RocksDbNative.SetBytesPerSync(this, (ulong)bytes);
        return this;
    }

    /// <summary>Bytes of file blocks kept in memory.</summary>
    public DbOptions SetBlockCache(long bytes)
    {
        nint cache = RocksDbNative.CreateLruCache((nuint)bytes);
        nint table = RocksDbNative.CreateTableOptions();
        RocksDbNative.SetBlockCache(table, cache);
        RocksDbNative.SetBlockBasedTableFactory(this, table);
        RocksDbNative.DestroyTableOptions(table);
        RocksDbNative.DestroyCache(cache);
        return this;
    }

    /// <summary>Bytes per second that flushes and compactions may write.</summary>
    public DbOptions SetRateLimit(long bytesPerSecond)
    {
        const long RefillMicroseconds = 100_000;
        const int Fairness = 10;
        nint limiter = RocksDbNative.CreateRateLimiter(bytesPerSecond, RefillMicroseconds, Fairness);
        RocksDbNative.SetRateLimiter(this, limiter);
        RocksDbNative.DestroyRateLimiter(limiter);
        return this;
    }

    protected override bool ReleaseHandle()
    {
        RocksDbNative.DestroyOptions(handle);
        return true;
    }

    private static byte Byte(bool value) => value ? (byte)1 : (byte)0;
}
