using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage.RocksDb;

/// <summary>
/// The used part of RocksDB's C interface (rocksdb/c.h of 11.12; docs/adr/0024-rocksdb-from-its-package.md). Safe
/// handles own the native objects. A call that can fail returns an error text, which the caller frees
/// (<see cref="RocksDbException.ThrowIf"/>). Stateless.
/// </summary>
internal static unsafe partial class RocksDbNative
{
    private const string Library = RocksDbLibrary.Name;

    [ModuleInitializer]
    internal static void FindLibrary() => RocksDbLibrary.Register();

    // ---- Database

    [LibraryImport(Library, EntryPoint = "rocksdb_list_column_families", StringMarshalling = StringMarshalling.Utf8)]
    public static partial nint* ListColumnFamilies(SafeHandle options, string path, out nuint count, out nint error);

    [LibraryImport(Library, EntryPoint = "rocksdb_list_column_families_destroy")]
    public static partial void DestroyColumnFamilyList(nint* names, nuint count);

    [LibraryImport(Library, EntryPoint = "rocksdb_open_column_families", StringMarshalling = StringMarshalling.Utf8)]
    public static partial nint OpenColumnFamilies(
        SafeHandle options, string path, int count, nint* names, nint* familyOptions, nint* families, out nint error);

    [LibraryImport(Library, EntryPoint = "rocksdb_create_column_family", StringMarshalling = StringMarshalling.Utf8)]
    public static partial nint CreateColumnFamily(SafeHandle database, SafeHandle options, string name, out nint error);

    [LibraryImport(Library, EntryPoint = "rocksdb_drop_column_family")]
    public static partial void DropColumnFamily(SafeHandle database, SafeHandle family, out nint error);

    [LibraryImport(Library, EntryPoint = "rocksdb_column_family_handle_destroy")]
    public static partial void DestroyColumnFamily(nint family);

    [LibraryImport(Library, EntryPoint = "rocksdb_disable_file_deletions")]
    public static partial void DisableFileDeletions(SafeHandle database, out nint error);

    [LibraryImport(Library, EntryPoint = "rocksdb_enable_file_deletions")]
    public static partial void EnableFileDeletions(SafeHandle database, out nint error);

    [LibraryImport(Library, EntryPoint = "rocksdb_close")]
    public static partial void Close(nint database);

    [LibraryImport(Library, EntryPoint = "rocksdb_ingest_external_file_cf")]
    public static partial void IngestExternalFile(
        SafeHandle database, SafeHandle family, nint* files, nuint count, SafeHandle options, out nint error);

    [LibraryImport(Library, EntryPoint = "rocksdb_get_pinned_cf")]
    public static partial nint GetPinned(
        SafeHandle database, SafeHandle options, SafeHandle family, byte* key, nuint keyLength, out nint error);

    [LibraryImport(Library, EntryPoint = "rocksdb_pinnableslice_value")]
    public static partial byte* PinnedValue(nint slice, out nuint length);

    [LibraryImport(Library, EntryPoint = "rocksdb_pinnableslice_destroy")]
    public static partial void DestroyPinned(nint slice);

    [LibraryImport(Library, EntryPoint = "rocksdb_property_value_cf", StringMarshalling = StringMarshalling.Utf8)]
    public static partial nint PropertyValue(SafeHandle database, SafeHandle family, string name);

    [LibraryImport(Library, EntryPoint = "rocksdb_free")]
    public static partial void Free(nint memory);

    // ---- Options

    [LibraryImport(Library, EntryPoint = "rocksdb_options_create")]
    public static partial nint CreateOptions();

    [LibraryImport(Library, EntryPoint = "rocksdb_options_destroy")]
    public static partial void DestroyOptions(nint options);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_create_if_missing")]
    public static partial void SetCreateIfMissing(SafeHandle options, byte value);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_paranoid_checks")]
    public static partial void SetParanoidChecks(SafeHandle options, byte value);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_write_buffer_size")]
    public static partial void SetWriteBufferSize(SafeHandle options, nuint bytes);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_disable_auto_compactions")]
    public static partial void SetDisableAutoCompactions(SafeHandle options, int value);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_level0_file_num_compaction_trigger")]
    public static partial void SetLevel0CompactionTrigger(SafeHandle options, int files);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_level0_slowdown_writes_trigger")]
    public static partial void SetLevel0SlowdownTrigger(SafeHandle options, int files);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_level0_stop_writes_trigger")]
    public static partial void SetLevel0StopTrigger(SafeHandle options, int files);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_max_open_files")]
    public static partial void SetMaxOpenFiles(SafeHandle options, int count);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_compression")]
    public static partial void SetCompression(SafeHandle options, int compression);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_info_log_level")]
    public static partial void SetInfoLogLevel(SafeHandle options, int level);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_keep_log_file_num")]
    public static partial void SetKeepLogFileNum(SafeHandle options, nuint count);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_manifest_preallocation_size")]
    public static partial void SetManifestPreallocationSize(SafeHandle options, nuint bytes);

    [LibraryImport(Library, EntryPoint = "rocksdb_options_set_use_direct_reads")]
    public static partial void SetUseDirectReads(SafeHandle options, byte value);

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

    [LibraryImport(Library, EntryPoint = "rocksdb_block_based_options_set_format_version")]
    public static partial void SetFormatVersion(nint table, int version);

    [LibraryImport(Library, EntryPoint = "rocksdb_block_based_options_set_block_size")]
    public static partial void SetBlockSize(nint table, nuint bytes);

    [LibraryImport(Library, EntryPoint = "rocksdb_cache_create_lru")]
    public static partial nint CreateLruCache(nuint bytes);

    [LibraryImport(Library, EntryPoint = "rocksdb_cache_destroy")]
    public static partial void DestroyCache(nint cache);

    [LibraryImport(Library, EntryPoint = "rocksdb_readoptions_create")]
    public static partial nint CreateReadOptions();

    [LibraryImport(Library, EntryPoint = "rocksdb_readoptions_destroy")]
    public static partial void DestroyReadOptions(nint options);

    [LibraryImport(Library, EntryPoint = "rocksdb_readoptions_set_verify_checksums")]
    public static partial void SetVerifyChecksums(SafeHandle options, byte value);

    [LibraryImport(Library, EntryPoint = "rocksdb_readoptions_set_fill_cache")]
    public static partial void SetFillCache(SafeHandle options, byte value);

    [LibraryImport(Library, EntryPoint = "rocksdb_readoptions_set_readahead_size")]
    public static partial void SetReadaheadSize(SafeHandle options, nuint bytes);

    // ---- External files

    [LibraryImport(Library, EntryPoint = "rocksdb_envoptions_create")]
    public static partial nint CreateEnvOptions();

    [LibraryImport(Library, EntryPoint = "rocksdb_envoptions_destroy")]
    public static partial void DestroyEnvOptions(nint options);

    [LibraryImport(Library, EntryPoint = "rocksdb_sstfilewriter_create")]
    public static partial nint CreateSstFileWriter(SafeHandle envOptions, SafeHandle options);

    [LibraryImport(Library, EntryPoint = "rocksdb_sstfilewriter_destroy")]
    public static partial void DestroySstFileWriter(nint writer);

    [LibraryImport(Library, EntryPoint = "rocksdb_sstfilewriter_open", StringMarshalling = StringMarshalling.Utf8)]
    public static partial void OpenSstFile(SafeHandle writer, string path, out nint error);

    [LibraryImport(Library, EntryPoint = "rocksdb_sstfilewriter_put")]
    public static partial void PutInSstFile(
        SafeHandle writer, byte* key, nuint keyLength, byte* value, nuint valueLength, out nint error);

    [LibraryImport(Library, EntryPoint = "rocksdb_sstfilewriter_finish")]
    public static partial void FinishSstFile(SafeHandle writer, out nint error);

    [LibraryImport(Library, EntryPoint = "rocksdb_ingestexternalfileoptions_create")]
    public static partial nint CreateIngestOptions();

    [LibraryImport(Library, EntryPoint = "rocksdb_ingestexternalfileoptions_destroy")]
    public static partial void DestroyIngestOptions(nint options);

    [LibraryImport(Library, EntryPoint = "rocksdb_ingestexternalfileoptions_set_move_files")]
    public static partial void SetMoveFiles(SafeHandle options, byte value);

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
