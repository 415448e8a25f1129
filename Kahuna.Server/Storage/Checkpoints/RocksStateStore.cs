using System.Buffers.Binary;
using System.Globalization;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;
using Kahuna.Server.Storage.RocksDb;

namespace Kahuna.Server.Storage.Checkpoints;

/// <summary>
/// Checkpoints of all groups in one RocksDB (<see cref="RocksStateFormat"/>), each group in a column family. A write
/// contains the changed records and bypasses RocksDB's memtable and log: its files are ingested together with the mark
/// in one step. When a family has grown too large, a write contains the whole state instead, in a new family, and the
/// old family is dropped. So nothing is ever compacted. Owned by the node; one thread at a time.
/// </summary>
internal sealed class RocksStateStore : IStateStore
{
    /// <summary>Bytes of records sorted at a time: the memory of a write.</summary>
    private const int PieceBytesNormally = 2_000_000;

    /// <summary>Below the database's directory, so that files can be linked into it.</summary>
    private const string StagingName = "staging";

    /// <summary>
    /// Free space required before a database that ran out of space is reopened: a little more than opening writes.
    /// </summary>
    private const long RoomToReopen = 4L << 20;

    private readonly IDisk _disk = LocalDisk.Shared;
    private readonly string _directory;
    private readonly string _staging;
    private readonly DbOptions _options;
    private readonly EnvOptions _fileOptions = new();
    private readonly IngestExternalFileOptions _ingest = new IngestExternalFileOptions().SetMoveFiles(true);
    private readonly ReadOptions _read = RocksStateOptions.ForReading();
    private readonly Dictionary<GroupId, StoredFamily> _families = [];
    private RocksDatabase? _database;
    private long _nextGeneration = 1;
    private long _writers;
    private int _readers;
    private bool _roomRanOut;
    private bool _disposed;

    /// <summary>Opens or creates the database, and removes the files of interrupted writes.</summary>
    /// <param name="directory">Its own directory.</param>
    /// <param name="pieceBytes">Bytes of records sorted at a time.</param>
    /// <param name="manifestReserve">Bytes that the database's manifest reserves.</param>
    /// <exception cref="StateDamagedException">It cannot be opened, or has another version.</exception>
    /// <exception cref="StateWriteFailedException">There is not enough space to open it.</exception>
    public RocksStateStore(
        string directory, int pieceBytes = PieceBytesNormally, long manifestReserve = RocksStateOptions.ManifestReserve)
    {
        _directory = directory;
        _staging = Path.Combine(directory, StagingName);
        PieceBytes = pieceBytes;
        _options = RocksStateOptions.ForDatabase(manifestReserve);
        try
        {
            MakeDirectories();

            // Checkpoints are read once, long after they were written. Through the page cache, reading took twice the
            // processor time.
            _options.SetUseDirectReads(_disk.CanReadDirectly(_staging));
            Database();
        }
        catch
        {
            Dispose();
            throw;
        }
    }

    public bool TakesWholeStates => false;

    public bool WantsWhole(GroupId group) => FamilyOf(group)?.IsOverfull ?? false;

    /// <summary>Bytes of records that a writer sorts at a time.</summary>
    public int PieceBytes { get; }

    public CheckpointMark? Find(GroupId group) => FamilyOf(group) is { } family ? ReadMark(group, family.Family) : null;

    public void Load(GroupId group, RowImageSink sink)
    {
        using RocksStateReader? reader = Open(group);
        if (reader is not null)
        {
            _families[group].StateBytes = reader.ReadAll(sink);
        }
    }

    public IStateWriter BeginWrite(GroupId group, in CheckpointMark mark, bool whole)
    {
        Recover();
        return new RocksStateWriter(
            this, (group, mark, whole), Path.Combine(_staging, (++_writers).ToString(CultureInfo.InvariantCulture)));
    }

    internal IdleSortBuffer Pieces { get; } = new();

    public void LetGo() => Pieces.LetGo();

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

    /// <summary>A RocksDB property of the column family that has a group's state.</summary>
    public string? Property(GroupId group, string name) => Database().GetProperty(name, _families[group].Family);

    /// <summary>Creates one file of a write.</summary>
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

    /// <summary>Ingests the files of a write: all or none, on stable storage when it returns.</summary>
    internal void Ingest(GroupId group, bool whole, IReadOnlyList<string> files)
    {
        if (!whole && FamilyOf(group) is { } family)
        {
            Ingest(files, family.Family);
            return;
        }

        if (_roomRanOut)
        {
            throw new StateWriteFailedException(
                $"Writing to the state store in {_directory} failed: the disk was full, and there is not enough free "
                    + "space yet to reopen the store",
                noSpace: true);
        }

        // A failure uses up the name too: without space for its options file, RocksDB creates the family and reports an
        // error. The family has no mark, so the next opening drops it.
        long generation = _nextGeneration++;
        ColumnFamily made = null!;
        Noted(() => made = Database().CreateColumnFamily(_options, RocksStateFormat.FamilyOf(group, generation)));
        StoredFamily stored = new(Database(), made, generation);
        try
        {
            Ingest(files, made);
        }
        catch
        {
            Drop(made);
            throw;
        }

        // From here on the new family is valid, even if the node stops now: it has a mark and the later generation.
        _families.Remove(group, out StoredFamily? before);
        _families.Add(group, stored);
        stored.StateBytes = stored.Bytes;
        if (before is not null)
        {
            Drop(before.Family);
        }
    }

    /// <summary>Removes the remaining files of a write.</summary>
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

    /// <summary>A reader was closed.</summary>
    internal void Closed()
    {
        InvariantException.Require(_readers > 0, "a reader is closed once");
        _readers--;
        _database?.RemoveUnusedFiles();
    }

    internal StateDamagedException Damaged(RocksDbException error) =>
        new(
            $"The state store in {_directory} fails: {error.Message}."
                + (error.Corruption ? "" : " Start the node again if the cause can be removed."),
            error);

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
            throw new StateWriteFailedException(
                $"The state store in {_directory} cannot be created: {error.Message}", error.IsNoSpace, error);
        }
    }

    private StoredFamily? FamilyOf(GroupId group)
    {
        Database();
        return _families.GetValueOrDefault(group);
    }

    /// <summary>
    /// The open database with its column families. Reopens it after a failed opening for lack of space.
    /// </summary>
    private RocksDatabase Database()
    {
        ObjectDisposedException.ThrowIf(_disposed, this);
        if (_database is null)
        {
            try
            {
                _database = RocksDatabase.Open(_options, _directory);
                CheckVersion();
                FindFamilies();
            }
            catch (RocksDbException error)
            {
                throw error.NoSpace ? Failed(error) : Damaged(error);
            }
            catch
            {
                _database?.Dispose();
                _database = null;
                throw;
            }
        }

        return _database;
    }

    /// <summary>
    /// Reopens a database that ran out of disk space. After a full disk RocksDB refuses all changes, even when there is
    /// space again, until it is reopened. Readers hold it open, so this waits for their end.
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
        byte[]? stored = Get(RocksStateFormat.VersionKey, family: null);
        if (stored is null)
        {
            WriteVersion();
        }
        else if (stored.Length != sizeof(uint)
            || BinaryPrimitives.ReadUInt32LittleEndian(stored) != RocksStateFormat.Version)
        {
            throw new StateDamagedException(
                $"The state store in {_directory} has the format version {Convert.ToHexString(stored)} (little "
                    + $"endian); this program reads version {RocksStateFormat.Version}.");
        }
    }

    private void WriteVersion()
    {
        using (Iterator iterator = Database().NewIterator(_read))
        {
            if (iterator.SeekToFirst().Valid() || Database().ColumnFamilies.Count > 1)
            {
                throw new StateDamagedException(
                    $"The state store in {_directory} has content, but no format version: another program "
                        + "wrote it, or it is damaged.");
            }
        }

        string path = Path.Combine(_staging, "version.sst");
        Span<byte> version = stackalloc byte[sizeof(uint)];
        BinaryPrimitives.WriteUInt32LittleEndian(version, RocksStateFormat.Version);
        using (StagedFile file = Stage(path))
        {
            file.Put(RocksStateFormat.VersionKey, version);
            file.Finish();
        }

        Ingest([path], family: null);
    }

    /// <summary>
    /// Finds each group's family: the latest one with a mark. The others are leftovers of interrupted writes and are
    /// dropped.
    /// </summary>
    private void FindFamilies()
    {
        Dictionary<long, long> known = _families.Values.ToDictionary(
            family => family.Generation, family => family.StateBytes);
        _families.Clear();
        foreach (ColumnFamily family in Database().ColumnFamilies.ToArray())
        {
            if (!RocksStateFormat.TryReadFamily(family.Name, out GroupId group, out long generation))
            {
                continue;
            }

            _nextGeneration = Math.Max(_nextGeneration, generation + 1);
            StoredFamily? other = _families.GetValueOrDefault(group);
            if (other?.Generation > generation || ReadMark(group, family) is null)
            {
                Drop(family);
                continue;
            }

            if (other is not null)
            {
                Drop(other.Family);
            }

            _families[group] = new StoredFamily(Database(), family, generation)
            {
                StateBytes = known.GetValueOrDefault(generation),
            };
        }
    }

    /// <summary>
    /// Drops a column family that is not valid. If that fails for lack of space, the next opening drops it.
    /// </summary>
    private void Drop(ColumnFamily family)
    {
        try
        {
            Database().DropColumnFamily(family);
        }
        catch (RocksDbException error) when (!error.Corruption)
        {
            _roomRanOut |= error.NoSpace;
        }
    }

    private void Ingest(IReadOnlyList<string> files, ColumnFamily? family) =>
        Noted(() => Database().IngestExternalFiles(files, _ingest, family));

    /// <summary>Runs a change that RocksDB records in its manifest, and notes when the disk is full.</summary>
    private void Noted(Action change)
    {
        try
        {
            change();
        }
        catch (RocksDbException error)
        {
            _roomRanOut |= error.NoSpace;
            throw Failed(error);
        }
    }

    private RocksStateReader? Open(GroupId group)
    {
        if (FamilyOf(group) is not { } family)
        {
            return null;
        }

        Iterator iterator = Database().NewIterator(_read, family.Family);
        try
        {
            // Find and the iterator see the same checkpoint, because all calls come from one thread.
            RocksStateReader reader = new(this, iterator, group, Find(group)!.Value);
            _readers++;
            return reader;
        }
        catch
        {
            iterator.Dispose();
            throw;
        }
    }

    private byte[]? Get(ReadOnlySpan<byte> key, ColumnFamily? family)
    {
        try
        {
            return Database().Get(key, _read, family);
        }
        catch (RocksDbException error)
        {
            throw Damaged(error);
        }
    }

    private CheckpointMark? ReadMark(GroupId group, ColumnFamily family)
    {
        Span<byte> key = stackalloc byte[RocksStateFormat.PrefixBytes];
        RocksStateFormat.WriteMarkKey(key, group);
        return Get(key, family) is { } value
            ? RocksStateFormat.ReadMark(value)
                ?? throw new StateDamagedException(
                    $"The state store in {_directory} is damaged: the mark of group {group} has {value.Length} bytes.")
            : null;
    }

    /// <summary>Converts an error of a write, which RocksDB may also fail because it found damage.</summary>
    internal StorageException Failed(RocksDbException error) =>
        error.Corruption
            ? Damaged(error)
            : new StateWriteFailedException(
                $"Writing to the state store in {_directory} failed: {error.Message}", error.NoSpace, error);
}
