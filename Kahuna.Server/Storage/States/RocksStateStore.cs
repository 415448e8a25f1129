using System.Buffers.Binary;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.Storage.RocksDb;

namespace Kahuna.Server.Storage.States;

/// <summary>
/// Keeps the states of all groups in one RocksDB: a write brings the keys that changed, and the mark in the same batch. Keys: <c>u32 group (big endian), 'k', the key's name</c>
/// for a record and <c>u32 group, 'm'</c> for the mark. RocksDB's own log is off, so a batch counts when its flush is done; all is in one column family, because
/// its C interface flushes only one at a time. Owned by the node; one thread at a time.
/// </summary>
internal sealed class RocksStateStore : IStateStore
{
    private const uint Version = 1;
    private const byte RecordKind = (byte)'k';
    private const byte MarkKind = (byte)'m';
    private const int PrefixBytes = 5;
    private const string Family = "default";

    private const long WriteBufferBytes = 64L << 20;
    private const long BlockCacheBytes = 8L << 20;
    private const long DiaryBytes = 1L << 20;
    private const long SyncEachBytes = 1L << 20;
    private const int WarningsAndWorse = 2;

    private readonly string _directory;
    private readonly RocksDatabase _database;
    private readonly ColumnFamilyHandle _family;
    private readonly ReadOptions _read = new ReadOptions().SetVerifyChecksums(true).SetFillCache(false).SetReadaheadSize(1 << 20);
    private readonly WriteOptions _write = new WriteOptions().DisableWal(true);
    private readonly FlushOptions _flush = new FlushOptions().SetWaitForFlush(true);

    /// <summary>Opens the database, or makes it.</summary>
    /// <param name="directory">Its own directory.</param>
    /// <param name="bytesPerSecond">What flushes and compactions may write.</param>
    /// <exception cref="StateDamagedException">It cannot be opened, or has another version.</exception>
    public RocksStateStore(string directory, long bytesPerSecond)
    {
        _directory = directory;
        try
        {
            using DbOptions options = new DbOptions()
                .SetCreateIfMissing()
                .SetParanoidChecks()
                .SetWriteBufferSize(WriteBufferBytes)
                .SetMaxBackgroundJobs(2)
                .SetMaxOpenFiles(-1)
                .SetCompression(Compression.No)
                .SetInfoLogLevel(WarningsAndWorse)
                .SetInfoLogFiles(DiaryBytes, 2)
                .SetBytesPerSync(SyncEachBytes)
                .SetBlockCache(BlockCacheBytes)
                .SetRateLimit(bytesPerSecond);
            _database = RocksDatabase.Open(options, directory, Family);
        }
        catch (RocksDbException error)
        {
            throw Refused(error);
        }

        _family = _database.GetColumnFamily(Family);
        try
        {
            CheckVersion();
        }
        catch
        {
            Dispose();
            throw;
        }
    }

    public bool TakesWholeStates => false;

    /// <summary>Version of the store's format, under a name that no group has: group 0 has no state.</summary>
    private static ReadOnlySpan<byte> VersionKey => "\0\0\0\0version"u8;

    public StateMark? Find(GroupId group)
    {
        Span<byte> key = stackalloc byte[PrefixBytes];
        WritePrefix(key, group, MarkKind);
        byte[]? mark = Guard(key, static (store, key) => store._database.Get(key, store._family, store._read));
        return mark switch
        {
            null => null,
            { Length: StateMarkCodec.Bytes } => StateMarkCodec.Read(mark),
            _ => throw new StateDamagedException($"The state store in {_directory} is damaged: the mark of group {group} has {mark.Length} bytes."),
        };
    }

    public void Load(GroupId group, StateRecordSink sink)
    {
        Span<byte> prefix = stackalloc byte[PrefixBytes];
        WritePrefix(prefix, group, RecordKind);
        try
        {
            using Iterator iterator = _database.NewIterator(_family, _read);
            for (iterator.Seek(prefix); iterator.Valid() && iterator.Key.StartsWith(prefix); iterator.Next())
            {
                sink(iterator.Value);
            }
        }
        catch (RocksDbException error)
        {
            throw Refused(error);
        }
    }

    public IStateWriter BeginWrite(GroupId group, in StateMark mark) => new Writer(this, group, mark);

    public void Dispose()
    {
        _read.Dispose();
        _write.Dispose();
        _flush.Dispose();
        _database.Dispose();
    }

    private static void WritePrefix(Span<byte> key, GroupId group, byte kind)
    {
        BinaryPrimitives.WriteUInt32BigEndian(key, group.Value);
        key[4] = kind;
    }

    private void CheckVersion()
    {
        byte[]? stored = Guard(VersionKey, static (store, key) => store._database.Get(key, store._family, store._read));
        if (stored is null)
        {
            byte[] version = new byte[sizeof(uint)];
            BinaryPrimitives.WriteUInt32LittleEndian(version, Version);
            using WriteBatch batch = new();
            Commit(batch.Put(VersionKey, version, _family));
        }
        else if (stored.Length != sizeof(uint) || BinaryPrimitives.ReadUInt32LittleEndian(stored) != Version)
        {
            throw new StateDamagedException($"The state store in {_directory} has the format version {Convert.ToHexString(stored)} (little endian); this program reads version {Version}.");
        }
    }

    private byte[]? Guard(ReadOnlySpan<byte> key, ReadCall call)
    {
        try
        {
            return call(this, key);
        }
        catch (RocksDbException error)
        {
            throw Refused(error);
        }
    }

    private void Commit(WriteBatch batch)
    {
        try
        {
            _database.Write(batch, _write);
            _database.Flush(_family, _flush);
        }
        catch (RocksDbException error)
        {
            throw Refused(error);
        }
    }

    private StateDamagedException Refused(RocksDbException error) => new($"The state store in {_directory} fails: {error.Message}", error);

    private delegate byte[]? ReadCall(RocksStateStore store, ReadOnlySpan<byte> key);

    private sealed class Writer(RocksStateStore store, GroupId group, StateMark mark) : IStateWriter
    {
        private readonly WriteBatch _batch = new();
        private byte[] _key = new byte[256];

        public void Add(ReadOnlySpan<byte> records)
        {
            while (!records.IsEmpty)
            {
                int length = BinaryPrimitives.ReadInt32LittleEndian(records);
                ReadOnlySpan<byte> record = records.Slice(sizeof(int), length);
                ReadOnlySpan<byte> name = KeyRecord.Key(record);
                if (_key.Length < PrefixBytes + name.Length)
                {
                    _key = new byte[PrefixBytes + name.Length];
                }

                WritePrefix(_key, group, RecordKind);
                name.CopyTo(_key.AsSpan(PrefixBytes));
                _batch.Put(_key.AsSpan(0, PrefixBytes + name.Length), record, store._family);
                records = records[(sizeof(int) + length)..];
            }
        }

        public void Commit()
        {
            Span<byte> key = stackalloc byte[PrefixBytes];
            Span<byte> value = stackalloc byte[StateMarkCodec.Bytes];
            WritePrefix(key, group, MarkKind);
            StateMarkCodec.Write(value, mark);
            store.Commit(_batch.Put(key, value, store._family));
        }

        public void Dispose() => _batch.Dispose();
    }
}
