using System.Buffers.Binary;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Checkpoints;
using Kahuna.Server.Storage.RocksDb;
using Kahuna.Tests.State;

namespace Kahuna.Tests.Storage.Checkpoints;

/// <summary>The store contract on RocksDB, and its own edge cases.</summary>
public sealed class RocksStateStoreTests : StateStoreContract
{
    private readonly string _directory = Directory.CreateTempSubdirectory("kahuna-rocks-").FullName;

    private string Staging => Path.Combine(_directory, "staging");

    public override void Dispose() => Directory.Delete(_directory, recursive: true);

    [Fact]
    public void Files_that_a_reader_has_held_go_when_it_ends()
    {
        StateDriver state = new();
        state.Set("a", "1");
        using IStateStore store = Open();
        Write(store, new GroupId(7), state.Machine, 1, whole: true);
        int files = Directory.GetFiles(_directory, "*.sst").Length;
        using (store.OpenReader(new GroupId(7)))
        {
            Write(store, new GroupId(7), state.Machine, 2, whole: true);
            Assert.Equal(files + 1, Directory.GetFiles(_directory, "*.sst").Length);
        }

        Assert.Equal(files, Directory.GetFiles(_directory, "*.sst").Length);
    }

    [Fact]
    public void Room_for_records_is_handed_on_until_no_write_is_due()
    {
        using RocksStateStore store = new(_directory);
        SortBuffer piece = store.Pieces.Take();
        store.Pieces.Give(piece);
        Assert.Same(piece, store.Pieces.Take());
        store.Pieces.Give(piece);
        store.LetGo();
        Assert.NotSame(piece, store.Pieces.Take());
    }

    /// <summary>
    /// Pieces of a few records, so that each write brings many files whose keys overlap, and nothing is merged.
    /// </summary>
    [Fact]
    public void Many_small_pieces_come_back_as_what_was_written_last()
    {
        Random random = new(7);
        GroupId[] groups = [new(1), new(2), new(0x01020304)];
        StateDriver[] states = [new(), new(), new()];
        for (int life = 0; life < 3; life++)
        {
            using RocksStateStore store = new(_directory, pieceBytes: 1_000);
            for (int round = 0; round < 25; round++)
            {
                int chosen = random.Next(groups.Length);
                bool whole = random.Next(4) == 0;
                if (whole && random.Next(2) == 0)
                {
                    states[chosen] = new StateDriver();
                }

                Change(states[chosen], random, random.Next(200));
                Write(store, groups[chosen], states[chosen].Machine, (ulong)(life + round), whole);
                for (int i = 0; i < groups.Length; i++)
                {
                    Assert.True(
                        store.Find(groups[i]) is null
                            ? states[i].Machine.Counts.Keys == 0
                            : Load(store, groups[i]).Digest == states[i].Machine.Digest);
                }
            }
        }
    }

    /// <summary>Each write asks first, as the state thread does.</summary>
    [Theory]
    [InlineData(16 << 10)]
    [InlineData(300)]
    public void Files_and_bytes_stay_bounded_however_often_is_written(int pieceBytes)
    {
        StateDriver state = new();
        using RocksStateStore store = new(_directory, pieceBytes);
        long largest = 0;
        int whole = 0;
        for (int round = 0; round < 60; round++)
        {
            for (int i = 0; i < 500; i++)
            {
                state.Set($"key/{i}", new string((char)('a' + (round % 26)), 1_000));
            }

            bool wanted = store.WantsWhole(new GroupId(1));
            whole += wanted ? 1 : 0;
            Write(store, new GroupId(1), state.Machine, (ulong)round + 1, wanted);
            largest = Math.Max(largest, Directory.GetFiles(_directory, "*.sst").Sum(file => new FileInfo(file).Length));
        }

        // The state has half a megabyte, or up to nine times as much with its history.
        Assert.InRange(whole, 10, 40);
        Assert.InRange(largest, 0, 50 << 20);
        Assert.Equal(state.Machine.Digest, Load(store, new GroupId(1)).Digest);
        Assert.False(File.Exists(Path.Combine(Staging, "1-1.sst")));
    }

    /// <summary>
    /// The node ended after the new family counted and before the old one was dropped, or before the new one had
    /// anything.
    /// </summary>
    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public void The_latest_family_with_a_mark_counts(bool complete)
    {
        StateDriver state = new();
        state.Set("key", "old");
        using (IStateStore store = Open())
        {
            Write(store, new GroupId(7), state.Machine, 1, whole: true);
        }

        string copy = _directory + "-copy";
        try
        {
            state.Set("key", "new");
            using (RocksStateStore store = new(copy))
            {
                Write(store, new GroupId(7), state.Machine, 2, whole: true);
            }

            AddFamily("7-9", complete ? copy : null);
        }
        finally
        {
            Directory.Delete(copy, recursive: true);
        }

        using (IStateStore store = Open())
        {
            Assert.Equal(complete ? 2UL : 1UL, store.Find(new GroupId(7))!.Value.Index.Value);
            Assert.Equal(complete, Load(store, new GroupId(7)).Digest == state.Machine.Digest);
            Write(store, new GroupId(7), state.Machine, 3, whole: true);
        }

        using DbOptions options = new();
        Assert.Equal(["7-10", "default"], RocksDatabase.ListColumnFamilies(options, _directory).Order());
    }

    [Fact]
    public void Opening_removes_what_an_interrupted_write_left()
    {
        Open().Dispose();
        File.WriteAllText(Path.Combine(Staging, "7-1.sst"), "half of a piece");
        Open().Dispose();
        Assert.Empty(Unfinished());
    }

    [Fact]
    public void Opening_again_and_again_leaves_no_file_behind()
    {
        StateDriver state = new();
        state.Set("key", "value");
        int[] files = new int[3];
        for (int i = 0; i < files.Length; i++)
        {
            for (int j = 0; j < 5; j++)
            {
                using IStateStore store = Open();
                if (i == 0 && j == 0)
                {
                    Write(store, new GroupId(1), state.Machine, 1);
                }
            }

            files[i] = Directory.GetFiles(_directory).Length;
        }

        Assert.Equal(files[0], files[1]);
        Assert.Equal(files[0], files[2]);
    }

    [Fact]
    public void Damage_is_named_with_its_file()
    {
        StateDriver state = new();
        Change(state, new Random(3), 500);
        using (IStateStore store = Open())
        {
            Write(store, new GroupId(1), state.Machine, 1);
        }

        string file = Directory.GetFiles(_directory, "*.sst")
            .OrderByDescending(path => new FileInfo(path).Length)
            .First();
        byte[] content = File.ReadAllBytes(file);
        content[content.Length / 4] ^= 1;
        File.WriteAllBytes(file, content);
        StateDamagedException error = Assert.Throws<StateDamagedException>(() =>
        {
            using IStateStore store = Open();
            Load(store, new GroupId(1));
        });
        Assert.Contains(_directory, error.Message, StringComparison.Ordinal);
        Assert.Contains(Path.GetFileName(file), error.Message, StringComparison.Ordinal);
        AssertNamesTheWayOut(error);
    }

    [Fact]
    public void A_missing_file_is_named_with_the_way_out()
    {
        StateDriver state = new();
        Change(state, new Random(3), 500);
        using (IStateStore store = Open())
        {
            Write(store, new GroupId(1), state.Machine, 1);
        }

        foreach (string file in Directory.GetFiles(_directory, "*.sst"))
        {
            File.Delete(file);
        }

        StateDamagedException error = Assert.Throws<StateDamagedException>(() =>
        {
            using IStateStore store = Open();
            Load(store, new GroupId(1));
        });
        Assert.Contains(_directory, error.Message, StringComparison.Ordinal);
        AssertNamesTheWayOut(error);
    }

    [Fact]
    public void Unknown_version_is_refused()
    {
        Open().Dispose();
        byte[] version = new byte[4];
        BinaryPrimitives.WriteUInt32LittleEndian(version, 5);
        Put("\0\0\0\0version"u8.ToArray(), version);
        StateDamagedException error = Assert.Throws<StateDamagedException>(() => Open().Dispose());
        Assert.Contains("format version 05000000", error.Message, StringComparison.Ordinal);
        Assert.Contains("this program reads version 4", error.Message, StringComparison.Ordinal);
        AssertNamesTheWayOut(error);
    }

    [Fact]
    public void Content_without_a_version_is_refused()
    {
        Put("something"u8.ToArray(), "else"u8.ToArray());
        Assert.Contains(
            "no format version",
            Assert.Throws<StateDamagedException>(() => Open().Dispose()).Message,
            StringComparison.Ordinal);
    }

    [Fact]
    public void Second_opening_is_refused()
    {
        using IStateStore store = Open();
        StateDamagedException error = Assert.Throws<StateDamagedException>(() => Open().Dispose());
        Assert.Contains(_directory, error.Message, StringComparison.Ordinal);
    }

    private protected override IStateStore Open() => new RocksStateStore(_directory);

    private protected override IEnumerable<string> Unfinished() => Directory.GetFiles(Staging);

    /// <summary>A family with all that the one of another store's database has, or with nothing.</summary>
    private void AddFamily(string name, string? source)
    {
        using DbOptions options = new();
        using RocksDatabase database = RocksDatabase.Open(options, _directory);
        ColumnFamily family = database.CreateColumnFamily(options, name);
        if (source is null)
        {
            return;
        }

        string path = _directory + ".sst";
        using ReadOptions read = new();
        using EnvOptions files = new();
        using IngestExternalFileOptions ingest = new IngestExternalFileOptions().SetMoveFiles(true);
        using (RocksDatabase other = RocksDatabase.Open(options, source))
        using (Iterator iterator = other.NewIterator(read, other.ColumnFamilies.Single(each => each.Name != "default")))
        using (SstFileWriter file = new(files, options))
        {
            file.Open(path);
            for (iterator.SeekToFirst(); iterator.Valid(); iterator.Next())
            {
                file.Put(iterator.Key, iterator.Value);
            }

            file.Finish();
        }

        database.IngestExternalFiles([path], ingest, family);
    }

    private void Put(byte[] key, byte[] value)
    {
        string path = _directory + ".sst";
        using DbOptions options = new DbOptions().SetCreateIfMissing();
        using EnvOptions files = new();
        using IngestExternalFileOptions ingest = new IngestExternalFileOptions().SetMoveFiles(true);
        using (SstFileWriter file = new(files, options))
        {
            file.Open(path).Put(key, value);
            file.Finish();
        }

        using RocksDatabase database = RocksDatabase.Open(options, _directory);
        database.IngestExternalFiles([path], ingest);
    }
}
