using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage.RocksDb;

/// <summary>
/// RocksDB's C interface (rocksdb/c.h of 7.8), the part that is used. Numbers and bytes go over as they are; ownership is the safe handles' business.
/// Where a call can fail it takes an error text, which the caller frees (<see cref="RocksDbException.ThrowIf"/>). Stateless.
/// </summary>
internal static unsafe partial class RocksDbNative
{
    private const string Library = RocksDbLibrary.Name;

    [ModuleInitializer]
    internal static void FindLibrary() => RocksDbLibrary.Register();

    // ---- Database

    [LibraryImport(Library, EntryPoint = "rocksdb_open_column_families", StringMarshalling = StringMarshalling.Utf8)]
    public static partial nint OpenColumnFamilies(SafeHandle options, string path, int count, byte** names, nint* familyOptions, nint* families, out nint error);

    [LibraryImport(Library, EntryPoint = "rocksdb_close")]
    public static partial void Close(nint database);

    [LibraryImport(Library, EntryPoint = "rocksdb_column_family_handle_destroy")]
    public static partial void DestroyColumnFamily(nint family);

    [LibraryImport(Library, EntryPoint = "rocksdb_write")]
    public static partial void Write(SafeHandle database, SafeHandle options, SafeHandle batch, out nint error);

    [LibraryImport(Library, EntryPoint = "rocksdb_get_pinned_cf")]
    public static partial nint GetPinned(SafeHandle database, SafeHandle options, SafeHandle family, byte* key, nuint keyLength, out nint error);

    [LibraryImport(Library, EntryPoint = "rocksdb_pinnableslice_value")]
    public static partial byte* PinnedValue(nint slice, out nuint length);

    [LibraryImport(Library, EntryPoint = "rocksdb_pinnableslice_destroy")]
    public static partial void DestroyPinned(nint slice);

    [LibraryImport(Library, EntryPoint = "rocksdb_flush_cf")]
    public static partial void Flush(SafeHandle database, SafeHandle options, SafeHandle family, out nint error);

    [LibraryImport(Library, EntryPoint = "rocksdb_property_value", StringMarshalling = StringMarshalling.Utf8)]
    public static partial nint PropertyValue(SafeHandle database, string name);

    [LibraryImport(Library, EntryPoint = "rocksdb_create_snapshot")]
    public static partial nint CreateSnapshot(SafeHandle database);

    [LibraryImport(Library, EntryPoint = "rocksdb_release_snapshot")]
    public static partial void ReleaseSnapshot(SafeHandle database, nint snapshot);

    [LibraryImport(Library, EntryPoint = "rocksdb_free")]
    public static partial void Free(nint memory);

    // ---- Options

    [LibraryImport(Library, EntryPoint = "rocksdb_options_create")]
    public static partial nint CreateOptions();

    [LibraryImport(Library, EntryPoint = "rocksdb_options_destroy")]
    public static partial void DestroyOptions(nint options);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_create_if_missing")]
    public static partial void SetCreateIfMissing(SafeHandle options, byte value);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_create_missing_column_families")]
    public static partial void SetCreateMissingColumnFamilies(SafeHandle options, byte value);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_atomic_flush")]
    public static partial void SetAtomicFlush(SafeHandle options, byte value);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_paranoid_checks")]
    public static partial void SetParanoidChecks(SafeHandle options, byte value);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_write_buffer_size")]
    public static partial void SetWriteBufferSize(SafeHandle options, nuint bytes);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_max_background_jobs")]
    public static partial void SetMaxBackgroundJobs(SafeHandle options, int count);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_max_open_files")]
    public static partial void SetMaxOpenFiles(SafeHandle options, int count);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_compression")]
    public static partial void SetCompression(SafeHandle options, int compression);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_info_log_level")]
    public static partial void SetInfoLogLevel(SafeHandle options, int level);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_keep_log_file_num")]
    public static partial void SetKeepLogFileNum(SafeHandle options, nuint count);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_max_log_file_size")]
    public static partial void SetMaxLogFileSize(SafeHandle options, nuint bytes);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_bytes_per_sync")]
    public static partial void SetBytesPerSync(SafeHandle options, ulong bytes);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_block_based_table_factory")]
    public static partial void SetBlockBasedTableFactory(SafeHandle options, nint table);

    [LibraryImport(Library, EntryPoint = "rocksdb_block_based_options_create")]
    public static partial nint CreateTableOptions();

    [LibraryImport(Library, EntryPoint = "rocksdb_block_based_options_destroy")]
    public static partial void DestroyTableOptions(nint table);

    [LibraryImport(Library, EntryPoint = "rocksdb_block_based_options_set_block_cache")]
    public static partial void SetBlockCache(nint table, nint cache);

    [LibraryImport(Library, EntryPoint = "rocksdb_cache_create_lru")]
    public static partial nint CreateLruCache(nuint bytes);

    [LibraryImport(Library, EntryPoint = "rocksdb_cache_destroy")]
    public static partial void DestroyCache(nint cache);

    [LibraryImport(Library, EntryPoint = "rocksdb_ratelimiter_create")]
    public static partial nint CreateRateLimiter(long bytesPerSecond, long refillPeriodMicroseconds, int fairness);

    [LibraryImport(Library, EntryPoint = "rocksdb_ratelimiter_destroy")]
    public static partial void DestroyRateLimiter(nint limiter);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_ratelimiter")]
    public static partial void SetRateLimiter(SafeHandle options, nint limiter);

    [LibraryImport(Library, EntryPoint = "rocksdb_readoptions_create")]
    public static partial nint CreateReadOptions();

    [LibraryImport(Library, EntryPoint = "rocksdb_readoptions_destroy")]
    public static partial void DestroyReadOptions(nint options);

    [LibraryImport(Library, EntryPoint = "rocksdb_readoptions_set_verify_checksums")]
    public static partial void SetVerifyChecksums(SafeHandle options, byte value);

    [LibraryImport(Library, EntryPoint = "rocksdb_readoptions_set_fill_cache")]
    public static partial void SetFillCache(SafeHandle options, byte value);

    [LibraryImport(Library, EntryPoint = "rocksdb_readoptions_set_snapshot")]
    public static partial void SetSnapshot(SafeHandle options, nint snapshot);

    [LibraryImport(Library, EntryPoint = "rocksdb_readoptions_set_readahead_size")]
    public static partial void SetReadaheadSize(SafeHandle options, nuint bytes);

    [LibraryImport(Library, EntryPoint = "rocksdb_writeoptions_create")]
    public static partial nint CreateWriteOptions();

    [LibraryImport(Library, EntryPoint = "rocksdb_writeoptions_destroy")]
    public static partial void DestroyWriteOptions(nint options);

    [LibraryImport(Library, EntryPoint = "rocksdb_writeoptions_disable_WAL")]
    public static partial void DisableWal(SafeHandle options, int value);

    [LibraryImport(Library, EntryPoint = "rocksdb_flushoptions_create")]
    public static partial nint CreateFlushOptions();

    [LibraryImport(Library, EntryPoint = "rocksdb_flushoptions_destroy")]
    public static partial void DestroyFlushOptions(nint options);

    [LibraryImport(Library, EntryPoint = "rocksdb_flushoptions_set_wait")]
    public static partial void SetWaitForFlush(SafeHandle options, byte value);

    // ---- Batches

    [LibraryImport(Library, EntryPoint = "rocksdb_writebatch_create")]
    public static partial nint CreateWriteBatch();

    [LibraryImport(Library, EntryPoint = "rocksdb_writebatch_destroy")]
    public static partial void DestroyWriteBatch(nint batch);

    [LibraryImport(Library, EntryPoint = "rocksdb_writebatch_clear")]
    public static partial void ClearWriteBatch(SafeHandle batch);

    [LibraryImport(Library, EntryPoint = "rocksdb_writebatch_count")]
    public static partial int CountWriteBatch(SafeHandle batch);

    [LibraryImport(Library, EntryPoint = "rocksdb_writebatch_put_cf")]
    public static partial void PutInBatch(SafeHandle batch, SafeHandle family, byte* key, nuint keyLength, byte* value, nuint valueLength);

    [LibraryImport(Library, EntryPoint = "rocksdb_writebatch_delete_cf")]
    public static partial void DeleteInBatch(SafeHandle batch, SafeHandle family, byte* key, nuint keyLength);

    // ---- Iterators

    [LibraryImport(Library, EntryPoint = "rocksdb_create_iterator_cf")]
    public static partial nint CreateIterator(SafeHandle database, SafeHandle options, SafeHandle family);

    [LibraryImport(Library, EntryPoint = "rocksdb_iter_destroy")]
    public static partial void DestroyIterator(nint iterator);

    [LibraryImport(Library, EntryPoint = "rocksdb_iter_seek_to_first")]
    public static partial void SeekToFirst(SafeHandle iterator);

    [LibraryImport(Library, EntryPoint = "rocksdb_iter_seek")]
    public static partial void Seek(SafeHandle iterator, byte* key, nuint keyLength);

    [LibraryImport(Library, EntryPoint = "rocksdb_iter_next")]
    public static partial void Next(SafeHandle iterator);

    [LibraryImport(Library, EntryPoint = "rocksdb_iter_valid")]
    public static partial byte IsValid(SafeHandle iterator);

    [LibraryImport(Library, EntryPoint = "rocksdb_iter_key")]
    public static partial byte* IteratorKey(SafeHandle iterator, out nuint length);

    [LibraryImport(Library, EntryPoint = "rocksdb_iter_value")]
    public static partial byte* IteratorValue(SafeHandle iterator, out nuint length);

    [LibraryImport(Library, EntryPoint = "rocksdb_iter_get_error")]
    public static partial void IteratorError(SafeHandle iterator, out nint error);
}
