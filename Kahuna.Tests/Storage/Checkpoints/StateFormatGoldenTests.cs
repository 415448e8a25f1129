using System.Globalization;
using System.Runtime.CompilerServices;
using System.Text;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Server.Storage.Checkpoints;
using Kahuna.Server.Storage.RocksDb;
using Kahuna.Tests.State;

namespace Kahuna.Tests.Storage.Checkpoints;

/// <summary>
/// The bytes of both state stores, against files of the repository: a change of the format is a decision, and shows in
/// the review.
/// </summary>
public sealed class StateFormatGoldenTests
{
    [Fact]
    public void ASnapshotFilesBytes()
    {
        ModelDisk disk = new();
        using FileStateStore store = new(disk, "/data/state");
        Write(store, new GroupId(7), SmallState());
        StringBuilder text = new();
        for (ReadOnlySpan<byte> bytes = disk.Content("/data/state/state-7.snapshot");
            !bytes.IsEmpty;
            bytes = bytes[Math.Min(16, bytes.Length)..])
        {
            text.Append(Convert.ToHexStringLower(bytes[..Math.Min(16, bytes.Length)])).Append('\n');
        }

        Check("snapshot.txt", text.ToString());
    }

    /// <summary>The file of a golden state, as it lies in the repository, is read.</summary>
    [Fact]
    public void ASnapshotFileOfVersion2IsRead()
    {
        ModelDisk disk = new();
        disk.CreateDirectory("/data/state");
        byte[] content = Convert.FromHexString(
            File.ReadAllText(PathOf("snapshot.txt")).Replace("\n", "", StringComparison.Ordinal));
        using (Server.Storage.Disk.IDiskFile file = disk.Open(
            "/data/state/state-7.snapshot", Server.Storage.Disk.DiskFileMode.Empty))
        {
            file.Write(0, [content]);
        }

        using FileStateStore store = new(disk, "/data/state");
        StateLoader loader = new(new StateLimits(), store.Find(new GroupId(7))!.Value.Summary);
        store.Load(new GroupId(7), record => loader.Add(record.Bytes));
        Assert.Equal(SmallState().Digest, loader.Finish().Digest);
    }

    [Fact]
    public void RocksDbsKeysAndValues()
    {
        string directory = Directory.CreateTempSubdirectory("kahuna-golden-").FullName;
        try
        {
            using (RocksStateStore store = new(directory))
            {
                Write(store, new GroupId(7), SmallState());
                Write(store, new GroupId(0x01020304), new StateMachine(new StateLimits()));
            }

            StringBuilder text = new();
            using DbOptions options = new();
            using ReadOptions read = new();
            using RocksDatabase database = RocksDatabase.Open(options, directory);
            foreach (ColumnFamily family in database.ColumnFamilies.OrderBy(
                family => family.Name, StringComparer.Ordinal))
            {
                text.Append(CultureInfo.InvariantCulture, $"{family.Name}:\n");
                using Iterator iterator = database.NewIterator(read, family);
                for (iterator.SeekToFirst(); iterator.Valid(); iterator.Next())
                {
                    text.Append(
                        CultureInfo.InvariantCulture,
                        $"{Convert.ToHexStringLower(iterator.Key)} = {Convert.ToHexStringLower(iterator.Value)}\n");
                }
            }

            Check("rocksdb.txt", text.ToString());
        }
        finally
        {
            Directory.Delete(directory, recursive: true);
        }
    }

    /// <summary>
    /// A golden state in two files of a family, as RocksDB 7.8 wrote it, is read, and what follows is added to it.
    /// </summary>
    [Fact]
    public void ADirectoryOfRocksDb78IsReadAndWrittenOn()
    {
        string directory = Directory.CreateTempSubdirectory("kahuna-golden-").FullName;
        try
        {
            foreach (string file in Directory.GetFiles(PathOf("rocksdb-7.8")))
            {
                File.Copy(file, Path.Combine(directory, Path.GetFileName(file)));
            }

            StateMachine expected = SmallState();
            for (int round = 0; round < 2; round++)
            {
                using RocksStateStore store = new(directory);
                Assert.Equal(new LogIndex(0x0102), store.Find(new GroupId(7))!.Value.Index);
                StateLoader loader = new(new StateLimits(), store.Find(new GroupId(7))!.Value.Summary);
                store.Load(new GroupId(7), record => loader.Add(record.Bytes));
                Assert.Equal(expected.Digest, loader.Finish().Digest);
                Write(store, new GroupId(7), expected, whole: round == 1);
            }
        }
        finally
        {
            Directory.Delete(directory, recursive: true);
        }
    }

    /// <summary>A value, a replaced one, none (null), a deadline, a deleted key.</summary>
    private static StateMachine SmallState()
    {
        StateDriver state = new();
        state.Set("a", "first");
        state.Now = 1_500;
        state.Set("a", "second");
        state.Set("null", null);
        state.Set("lease", "x", ttlMs: 60_000);
        state.Set("gone", "y");
        state.Delete("gone");
        return state.Machine;
    }

    private static void Write(IStateStore store, GroupId group, StateMachine machine, bool whole = true)
    {
        using StateView view = machine.ViewAll();
        using IStateWriter writer = store.BeginWrite(
            group, new CheckpointMark(new LogIndex(0x0102), new Term(3), view.Summary), whole);
        StateSlices.Add(writer, view, 1_000_000);
        writer.Commit();
    }

    private static void Check(string name, string text)
    {
        string path = PathOf(name);
        if (Environment.GetEnvironmentVariable("KAHUNA_UPDATE_GOLDEN") == "1")
        {
            Directory.CreateDirectory(Path.GetDirectoryName(path)!);
            File.WriteAllText(path, text);
        }

        Assert.Equal(File.ReadAllText(path), text);
    }

    private static string PathOf(string name, [CallerFilePath] string source = "") =>
        Path.Combine(Path.GetDirectoryName(source)!, "..", "..", "Golden", "States", name);
}
