using System.Buffers.Binary;
using System.Globalization;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.RocksDb;
using Kahuna.Server.Storage.States;
using Kahuna.Tests.State;

namespace Kahuna.Tests.Storage.States;

/// <summary>The contract on RocksDB, and what only it can get wrong.</summary>
public sealed class RocksStateStoreTests : StateStoreContract
{
    private const string Level0Files = "rocksdb.num-files-at-level0";

    private readonly string _directory = Directory.CreateTempSubdirectory("kahuna-rocks-").FullName;

    private string Staging => Path.Combine(_directory, "staging");

    public override void Dispose() => Directory.Delete(_directory, recursive: true);

    /// <summary>Pieces of a few records, so that each write brings many files whose keys overlap, and compactions run all the time.</summary>
    [Fact]
    public void Many_small_pieces_come_back_as_what_was_written_last()
    {
        Random random = new(7);
        GroupId[] groups = [new(1), new(2), new(0x01020304)];
        StateDriver[] states = [new(), new(), new()];
        for (int life = 0; life < 3; life++)
        {
            using RocksStateStore store = new(_directory, bytesPerSecond: 64 << 20, pieceBytes: 1_000);
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
                    Assert.True(store.Find(groups[i]) is null ? states[i].Machine.Counts.Keys == 0 : Load(store, groups[i]).Digest == states[i].Machine.Digest);
                }
            }
        }
    }

    [Fact]
    public void Runs_and_bytes_stay_bounded_however_often_is_written()
    {
        StateDriver state = new();
        using RocksStateStore store = new(_directory, bytesPerSecond: 256 << 20, pieceBytes: 16 << 10);
        for (int round = 0; round < 30; round++)
        {
            for (int i = 0; i < 500; i++)
            {
                state.Set($"key/{i}", new string((char)('a' + (round % 26)), 100));
            }

            Write(store, new GroupId(1), state.Machine, (ulong)round + 1);
        }

        Assert.True(SpinWait.SpinUntil(() => store.Property("rocksdb.compaction-pending") == "0" && store.Property("rocksdb.num-running-compactions") == "0", TimeSpan.FromSeconds(30)));
        Assert.InRange(int.Parse(store.Property(Level0Files)!, CultureInfo.InvariantCulture), 0, 16);
        Assert.Equal(state.Machine.Digest, Load(store, new GroupId(1)).Digest);
    }

    /// <summary>A file that were put deeper could meet there what a compaction is writing at the same moment.</summary>
    [Fact]
    public void All_that_is_written_begins_at_level_0()
    {
        using RocksStateStore store = new(_directory, bytesPerSecond: 64 << 20);
        Assert.Equal("2", store.Property(Level0Files));
        StateDriver state = new();
        state.Set("key", "value");
        Write(store, new GroupId(1), state.Machine, 1);
        state.Set("key", "another value");
        Write(store, new GroupId(9), state.Machine, 1);
        Assert.Equal("8", store.Property(Level0Files));
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

        string file = Directory.GetFiles(_directory, "*.sst").OrderByDescending(path => new FileInfo(path).Length).First();
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
    }

    [Fact]
    public void Unknown_version_is_refused()
    {
        Open().Dispose();
        byte[] version = new byte[4];
        BinaryPrimitives.WriteUInt32LittleEndian(version, 3);
        Put("\0\0\0\0version"u8.ToArray(), version);
        StateDamagedException error = Assert.Throws<StateDamagedException>(() => Open().Dispose());
        Assert.Contains("format version 03000000", error.Message, StringComparison.Ordinal);
        Assert.Contains("this program reads version 2", error.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void Content_without_a_version_is_refused()
    {
        Put("something"u8.ToArray(), "else"u8.ToArray());
        Assert.Contains("not the version", Assert.Throws<StateDamagedException>(() => Open().Dispose()).Message, StringComparison.Ordinal);
    }

    [Fact]
    public void Second_opening_is_refused()
    {
        using IStateStore store = Open();
        StateDamagedException error = Assert.Throws<StateDamagedException>(() => Open().Dispose());
        Assert.Contains(_directory, error.Message, StringComparison.Ordinal);
    }

    private protected override IStateStore Open() => new RocksStateStore(_directory, bytesPerSecond: 64 << 20);

    private protected override IEnumerable<string> Unfinished() => Directory.GetFiles(Staging);

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
