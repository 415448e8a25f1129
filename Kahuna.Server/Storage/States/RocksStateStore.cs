using System.Buffers.Binary;
using System.Globalization;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;
using Kahuna.Server.Storage.RocksDb;

namespace Kahuna.Server.Storage.States;

/// <summary>
/// Keeps the states of all groups in one RocksDB (<see cref="RocksStateFormat"/>): a write brings the keys that changed. It goes past RocksDB's tables in memory and its log, as files that
/// are taken in together with the mark in one step. Owned by the node; one thread at a time.
/// </summary>
internal sealed class RocksStateStore : IStateStore
{
    /// <summary>Records that are sorted at a time: what a write needs in memory.</summary>
    private const int PieceBytesNormally = 2_000_000;

    /// <summary>Below the database's directory, so that files can be linked into it.</summary>
    private const string StagingName = "staging";

    // Nothing is ever written through the table in memory; this is the least that RocksDB takes.
    private const long WriteBufferBytes = 64 << 10;
    private const long BlockCacheBytes = 1L << 20;

    // All is read in whole runs, so large blocks cost nothing, and the index, which stays in memory, is a quarter of the normal one.
    private const int BlockBytes = 16 << 10;
    private const long TargetFileBytes = 64L << 20;
    private const long ReadAheadBytes = 1L << 20;

    // For each run that is merged, of which there may be many.
    private const long MergeReadAheadBytes = 128L << 10;
    private const long SyncEachBytes = 1L << 20;

    // Nothing but the options goes to the diary (the file LOG), and that at once when it is opened. What is wrong comes with the calls, and a library that was built with assertions, as
    // Debian's is, ends the process when it writes to its diary again after the disk was full.
    private const int OptionsOnly = 5;

    // So many runs are merged, so reading everything merges few. A write adds three, and one more for each piece of what changed meanwhile; it must never wait for a compaction.
    private const int RunsMax = 16;
    private const int Level0Unbounded = 1 << 20;

    // All is merged when what was written since is one and a half times the rest, and there are as many runs as the bound: each key is written again once for one to two
    // times that it changed. The directory has at most 2.5 times the state then, or so many runs, and the state once more while it is merged.
    private const int AmplificationPercent = 150;
    private const int SizeRatioPercent = 20;

    /// <summary>Room that must be there before a database that ran out of it is closed and opened again: what opening writes, and some.</summary>
    private const long RoomToReopen = 4L << 20;

    private readonly PosixDisk _disk = new();
    private readonly string _directory;
    private readonly string _staging;
    private readonly DbOptions _options;
    private readonly EnvOptions _fileOptions = new();
    private readonly IngestExternalFileOptions _ingest = new IngestExternalFileOptions().SetMoveFiles(true).SetSnapshotConsistency(true);
    private readonly ReadOptions _read = new ReadOptions().SetVerifyChecksums(true).SetFillCache(false).SetReadaheadSize(ReadAheadBytes);
    private RocksDatabase? _database;
    private long _writers;
    private int _readers;
    private RecordPiece? _idlePiece;
    private bool _roomRanOut;
    private bool _disposed;

    /// <summary>Opens the database, or makes it, and removes what an interrupted write left.</summary>
    /// <param name="directory">Its own directory.</param>
    /// <param name="bytesPerSecond">What compactions may write.</param>
    /// <param name="pieceBytes">Records that are sorted at a time.</param>
    /// <exception cref="StateDamagedException">It cannot be opened, or has another version.</exception>
    /// <exception cref="StateWriteFailedException">There is no room to open it.</exception>
    public RocksStateStore(string directory, long bytesPerSecond, int pieceBytes = PieceBytesNormally)
    {
        _directory = directory;
        _staging = Path.Combine(directory, StagingName);
        PieceBytes = pieceBytes;
        _options = new DbOptions()
            .SetCreateIfMissing()
            .SetParanoidChecks()
            .SetWriteBufferSize(WriteBufferBytes)
            .SetUniversalCompaction(SizeRatioPercent, AmplificationPercent)
            .SetLevel0Triggers(RunsMax, Level0Unbounded, Level0Unbounded)
            .SetTargetFileSizeBase(TargetFileBytes)
            .SetCompactionReadaheadSize(MergeReadAheadBytes)
            .SetMaxBackgroundJobs(2)
            .SetMaxOpenFiles(-1)
            .SetCompression(Compression.No)
            .SetInfoLogLevel(OptionsOnly)
            .SetInfoLogFiles(count: 1)
            .SetBytesPerSync(SyncEachBytes)
            .SetBlocks(BlockBytes, BlockCacheBytes)
            .SetRateLimit(bytesPerSecond);
        try
        {
            MakeDirectories();

            // What is read was written long ago and is read once. Through the system's cache a merge took nearly twice the processor time.
            _options.SetUseDirectReads(_disk.CanReadDirectly(_staging));
            Database();
            CheckVersion();
        }
        catch
        {
            Dispose();
            throw;
        }
    }

    public bool TakesWholeStates => false;

    /// <summary>Records that a writer sorts at a time.</summary>
    public int PieceBytes { get; }

    public StateMark? Find(GroupId group)
    {
        Span<byte> key = stackalloc byte[RocksStateFormat.PrefixBytes];
        RocksStateFormat.WriteMarkKey(key, group);
        return Get(key) is { } value ? ReadMark(group, value) : null;
    }

    public void Load(GroupId group, StateRecordSink sink)
    {
        using RocksStateReader? reader = Open(group);
        reader?.ReadAll(sink);
    }

    public IStateWriter BeginWrite(GroupId group, in StateMark mark, bool whole)
    {
        Recover();
        return new RocksStateWriter(this, (group, mark, whole), Path.Combine(_staging, (++_writers).ToString(CultureInfo.InvariantCulture)));
    }

    /// <summary>The room for a writer's records, which writers hand on to each other.</summary>
    internal RecordPiece TakePiece()
    {
        RecordPiece piece = _idlePiece ?? new RecordPiece();
        _idlePiece = null;
        return piece;
    }

    internal void GivePiece(RecordPiece piece)
    {
        piece.Clear();
        _idlePiece = piece;
    }

    public IStateReader? OpenReader(GroupId group) => Open(group);

    public void Dispose()
    {
        _disposed = true;
        _read.Dispose();
        _ingest.Dispose();
        _fileOptions.Dispose();
        _database?.Dispose();
        _options.Dispose();
    }

    /// <summary>A property of RocksDB.</summary>
    public string? Property(string name) => Database().GetProperty(name);

    /// <summary>Begins one file of a write.</summary>
    internal StagedFile Stage(string path)
    {
        SstFileWriter file = new(_fileOptions, _options);
        try
        {
            return new StagedFile(this, file.Open(path));
        }
        catch (RocksDbException error)
        {
            file.Dispose();
            throw Failed(error);
        }
    }

    /// <summary>
    /// Takes the files of a write in: all or none, and on stable storage when it returns. Two of them must have a key in common: then RocksDB puts all before everything that is stored. It would
    /// look for the deepest place where each fits otherwise, and a compaction that begins at that moment may fill the same place.
    /// </summary>
    internal void Ingest(IReadOnlyList<string> files)
    {
        RocksDatabase database = Database();
        try
        {
            database.IngestExternalFiles(files, _ingest);
        }
        catch (RocksDbException error)
        {
            _roomRanOut |= error.NoSpace;
            throw Failed(error);
        }
    }

    /// <summary>Removes what is left of a write's files.</summary>
    internal void RemoveStaged(IReadOnlyList<string> files)
    {
        try
        {
            foreach (string path in files)
            {
                _disk.Delete(path);
            }
        }
        catch (DiskException)
        {
            // The next opening of the store removes them.
        }
    }

    /// <summary>A reader is gone.</summary>
    internal void Closed() => _readers--;

    internal StateDamagedException Damaged(RocksDbException error) =>
        new($"The state store in {_directory} fails: {error.Message}.{(error.Corruption ? " Rebuild the node from the others, or restore the directory." : "")}", error);

    private void MakeDirectories()
    {
        try
        {
            _disk.CreateDirectory(_staging);
            foreach (string name in _disk.List(_staging))
            {
                _disk.Delete(Path.Combine(_staging, name));
            }
        }
        catch (DiskException error)
        {
            throw new StateWriteFailedException($"The state store in {_directory} cannot be made: {error.Message}", error.Number == DiskException.NoSpaceLeft, error);
        }
    }

    /// <summary>The open database. It is opened again here when that failed for lack of room.</summary>
    private RocksDatabase Database()
    {
        ObjectDisposedException.ThrowIf(_disposed, this);
        if (_database is null)
        {
            try
            {
                _database = RocksDatabase.Open(_options, _directory);
            }
            catch (RocksDbException error)
            {
                throw error.NoSpace ? Failed(error) : Damaged(error);
            }
        }

        return _database;
    }

    /// <summary>
    /// A database that could not write down a change because the disk was full refuses all that follow, also when there is room again. Opening it anew ends that; a reader holds it
    /// open, so that has to wait for its end.
    /// </summary>
    private void Recover()
    {
        if (_roomRanOut && _readers == 0 && _disk.Space(_directory).Free >= RoomToReopen)
        {
            _database?.Dispose();
            _database = null;
            Database();
            _roomRanOut = false;
        }
    }

    private void CheckVersion()
    {
        byte[]? stored = Get(RocksStateFormat.VersionKey);
        if (stored is null)
        {
            WriteVersion();
        }
        else if (stored.Length != sizeof(uint) || BinaryPrimitives.ReadUInt32LittleEndian(stored) != RocksStateFormat.Version)
        {
            throw new StateDamagedException($"The state store in {_directory} has the format version {Convert.ToHexString(stored)} (little endian); this program reads version {RocksStateFormat.Version}.");
        }
    }

    private void WriteVersion()
    {
        using (Iterator iterator = Database().NewIterator(_read))
        {
            if (iterator.SeekToFirst().Valid())
            {
                throw new StateDamagedException($"The state store in {_directory} has content, but not the version of its format: something else wrote it, or it is damaged.");
            }
        }

        string[] files = [Path.Combine(_staging, "version-1.sst"), Path.Combine(_staging, "version-2.sst")];
        Span<byte> version = stackalloc byte[sizeof(uint)];
        BinaryPrimitives.WriteUInt32LittleEndian(version, RocksStateFormat.Version);
        foreach (string path in files)
        {
            using StagedFile file = Stage(path);
            file.Put(RocksStateFormat.VersionKey, version);
            file.Finish();
        }

        Ingest(files);
    }

    private RocksStateReader? Open(GroupId group)
    {
        Iterator iterator = Database().NewIterator(_read);
        try
        {
            Span<byte> key = stackalloc byte[RocksStateFormat.PrefixBytes];
            RocksStateFormat.WriteMarkKey(key, group);
            if (iterator.Seek(key).Valid() && iterator.Key.SequenceEqual(key))
            {
                RocksStateReader reader = new(this, iterator, group, ReadMark(group, iterator.Value));
                _readers++;
                return reader;
            }
        }
        catch (RocksDbException error)
        {
            iterator.Dispose();
            throw Damaged(error);
        }
        catch
        {
            iterator.Dispose();
            throw;
        }

        iterator.Dispose();
        return null;
    }

    private byte[]? Get(ReadOnlySpan<byte> key)
    {
        try
        {
            return Database().Get(key, _read);
        }
        catch (RocksDbException error)
        {
            throw Damaged(error);
        }
    }

    private StateMark ReadMark(GroupId group, ReadOnlySpan<byte> value) =>
        RocksStateFormat.ReadMark(value) ?? throw new StateDamagedException($"The state store in {_directory} is damaged: the mark of group {group} has {value.Length} bytes.");

    /// <summary>A write can also end because RocksDB has found damage before, while it compacted.</summary>
    internal StorageException Failed(RocksDbException error) =>
        error.Corruption ? Damaged(error) : new StateWriteFailedException($"Writing to the state store in {_directory} failed: {error.Message}", error.NoSpace, error);
}
