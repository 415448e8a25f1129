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

    /// <summary>Damage that is found stops the database instead of being passed by.</summary>
    public DbOptions SetParanoidChecks(bool value = true)
    {
        RocksDbNative.SetParanoidChecks(this, Byte(value));
        return this;
    }

    /// <summary>Bytes that are gathered in memory before a file is written.</summary>
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

    /// <summary>RocksDB's own diary (the file LOG, not its write-ahead log): 0 debug to 4 fatal, 5 only the options.</summary>
    public DbOptions SetInfoLogLevel(int level)
    {
        RocksDbNative.SetInfoLogLevel(this, level);
        return this;
    }

    /// <summary>Files of the diary that are kept; each opening begins one.</summary>
    public DbOptions SetInfoLogFiles(int count)
    {
        RocksDbNative.SetKeepLogFileNum(this, (nuint)count);
        return this;
    }

    /// <summary>Files are written out in pieces of this size, so that a sync at their end has little left to do.</summary>
    public DbOptions SetBytesPerSync(long bytes)
    {
        RocksDbNative.SetBytesPerSync(this, (ulong)bytes);
        return this;
    }

    /// <summary>Bytes that the manifest reserves where there is room, so that it can note what changes on a full disk, too.</summary>
    public DbOptions SetManifestReserve(long bytes)
    {
        RocksDbNative.SetManifestPreallocationSize(this, (nuint)bytes);
        return this;
    }

    /// <summary>All reads go past the system's page cache. The file system must be able to.</summary>
    public DbOptions SetUseDirectReads(bool value = true)
    {
        RocksDbNative.SetUseDirectReads(this, Byte(value));
        return this;
    }

    /// <summary>Bytes of a block, the unit that is read and has a checksum, bytes of blocks kept in memory, and the version of the files' format.</summary>
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

    /// <summary>Files are merged only when that is asked for.</summary>
    public DbOptions SetDisableAutoCompactions(bool value = true)
    {
        RocksDbNative.SetDisableAutoCompactions(this, Byte(value));
        return this;
    }

    /// <summary>Files at level 0 from which on is compacted, and from which on writes are slowed down, and refused.</summary>
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
