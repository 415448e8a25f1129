using System.Text;
using Kahuna.Server.Storage.RocksDb;
using Xunit.Abstractions;

namespace Kahuna.Tests.Storage.RocksDb;

/// <summary>
/// The interop on the real library: what is taken in is there, what fails says so, and nothing is left behind, which
/// only shows while no other test takes memory.
/// </summary>
[Collection(MeasuredHeapCollection.Name)]
public sealed class RocksDbTests(ITestOutputHelper output) : IDisposable
{
    private const int OpensWithoutGrowth = 2_000;

    /// <summary>
    /// In memory where there is such a place: ten thousand times opening and closing is not about the disk.
    /// </summary>
    private readonly string _directory = Path.Combine(
        Directory.Exists("/dev/shm") ? "/dev/shm" : Path.GetTempPath(),
        "kahuna-rocksdb-" + Guid.NewGuid().ToString("N"));

    private readonly ReadOptions _read = new ReadOptions().SetVerifyChecksums(true);
    private readonly EnvOptions _files = new();
    private readonly IngestExternalFileOptions _ingest = new IngestExternalFileOptions().SetMoveFiles(true);
    private int _staged;

    public void Dispose()
    {
        _read.Dispose();
        _files.Dispose();
        _ingest.Dispose();
        if (Directory.Exists(_directory))
        {
            Directory.Delete(_directory, recursive: true);
        }
    }

    [Fact]
    public void File_is_read_back_and_walked_in_order()
    {
        using RocksDatabase database = Open();
        Ingest(database, Stage("a=1", "b=2", "c="));
        Assert.Equal("1"u8.ToArray(), database.Get("a"u8, _read)!);
        Assert.Equal([], database.Get("c"u8, _read)!);
        Assert.Null(database.Get("d"u8, _read));
        Assert.Equal("a=1 b=2 c=", Walk(database));
        using Iterator iterator = database.NewIterator(_read);
        Assert.Equal("c"u8, iterator.Seek("bb"u8).Key);
        Assert.False(iterator.Next().Valid());
        Assert.NotNull(database.GetProperty("rocksdb.total-sst-files-size"));
        Assert.Null(database.GetProperty("rocksdb.no-such-property"));
    }

    /// <summary>What a state write rests on: files of one step may overlap.</summary>
    [Fact]
    public void Later_file_of_a_step_wins_and_all_win_over_what_was_there()
    {
        using RocksDatabase database = Open();
        Ingest(database, Stage("a=old", "b=old", "c=old", "z=old"));
        Ingest(database, Stage("a=1", "c=1"), Stage("b=2", "c=2"));
        Assert.Equal("a=1 b=2 c=2 z=old", Walk(database));
        Ingest(database, Stage("a=3"));
        Assert.Equal("a=3 b=2 c=2 z=old", Walk(database));
    }

    /// <summary>
    /// What a whole state rests on: a family's files go with it, whoever walks it goes on, and it stays away.
    /// </summary>
    [Fact]
    public void A_dropped_family_is_gone_but_for_who_walks_it()
    {
        using (RocksDatabase database = Open())
        {
            using DbOptions options = new();
            using IngestExternalFileOptions ingest = new IngestExternalFileOptions().SetMoveFiles(true);
            ColumnFamily first = database.CreateColumnFamily(options, "7-1");
            ColumnFamily second = database.CreateColumnFamily(options, "7-2");
            Assert.Throws<RocksDbException>(() => database.CreateColumnFamily(options, "7-2"));
            database.IngestExternalFiles([Stage("a=1", "b=1")], ingest, first);
            database.IngestExternalFiles([Stage("a=2")], ingest, second);
            Assert.Equal("2"u8, database.Get("a"u8, _read, second)!);
            Assert.Null(database.Get("a"u8, _read));
            Assert.NotEqual("0", database.GetProperty("rocksdb.total-sst-files-size", first));
            using (Iterator iterator = database.NewIterator(_read, first).SeekToFirst())
            {
                database.DropColumnFamily(first);
                Assert.Equal(["7-2", "default"], database.ColumnFamilies.Select(family => family.Name).Order());
                Assert.Equal("1"u8, iterator.Value);
                Assert.Equal("b"u8, iterator.Next().Key);
                Assert.False(iterator.Next().Valid());
            }

            database.RemoveUnusedFiles();
            Assert.Single(Directory.GetFiles(_directory, "*.sst"));
        }

        using RocksDatabase again = Open();
        ColumnFamily left = Assert.Single(again.ColumnFamilies, family => family.Name != "default");
        Assert.Equal("2"u8, again.Get("a"u8, _read, left)!);
    }

    /// <summary>The copy is what a killed process would leave.</summary>
    [Fact]
    public void What_was_taken_in_is_there_without_closing()
    {
        using RocksDatabase database = Open();
        Ingest(database, Stage("a=1"), Stage("b=1"));
        string unused = Stage("c=1");
        string copy = _directory + "-copy";
        Directory.CreateDirectory(copy);
        try
        {
            foreach (string file in Directory.GetFiles(_directory))
            {
                File.Copy(file, Path.Combine(copy, Path.GetFileName(file)));
            }

            using RocksDatabase crashed = Open(copy);
            Assert.Equal("a=1 b=1", Walk(crashed));
            Assert.True(File.Exists(unused));
        }
        finally
        {
            Directory.Delete(copy, recursive: true);
        }
    }

    [Fact]
    public void Step_with_an_unusable_file_takes_nothing_in()
    {
        using RocksDatabase database = Open();
        string broken = Stage("b=1");
        File.WriteAllText(broken, "no file of this kind, but long enough to be looked at: " + new string('x', 200));
        RocksDbException error = Assert.Throws<RocksDbException>(() => Ingest(database, Stage("a=1"), broken));
        Assert.True(error.Corruption, error.Message);
        Assert.Equal("", Walk(database));
        Ingest(database, Stage("c=1"));
        Assert.Equal("c=1", Walk(database));
    }

    [Fact]
    public void Keys_out_of_order_are_refused()
    {
        RocksDbException error = Assert.Throws<RocksDbException>(() => Stage("b=1", "a=1"));
        Assert.Contains("ascending order", error.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void Iterator_does_not_see_what_came_later()
    {
        using RocksDatabase database = Open();
        Ingest(database, Stage("key=before"));
        using Iterator iterator = database.NewIterator(_read);
        Ingest(database, Stage("key=after"));
        Assert.Equal("before"u8, iterator.SeekToFirst().Value);
        Assert.Equal("after"u8.ToArray(), database.Get("key"u8, _read)!);
    }

    [Fact]
    public void Iterator_may_outlive_the_database_handle()
    {
        RocksDatabase database = Open();
        Ingest(database, Stage("key=value"));
        Iterator iterator = database.NewIterator(_read);
        database.Dispose();
        Assert.Equal("value"u8, iterator.SeekToFirst().Value);
        iterator.Dispose();
        Open().Dispose();
    }

    [Fact]
    public void Second_opening_is_refused_with_the_text_of_the_library()
    {
        using RocksDatabase first = Open();
        RocksDbException error = Assert.Throws<RocksDbException>(() => Open().Dispose());
        Assert.Contains("lock", error.Message, StringComparison.OrdinalIgnoreCase);
    }

    [Fact]
    public void Flipped_bit_in_a_file_is_found_when_it_is_read()
    {
        using (RocksDatabase database = Open())
        {
            Ingest(database, Stage([.. Enumerable.Range(0, 200).Select(i => $"key{i:D4}={new string('v', 100)}")]));
        }

        string file = Assert.Single(Directory.GetFiles(_directory, "*.sst"));
        byte[] content = File.ReadAllBytes(file);
        content[content.Length / 4] ^= 0x10;
        File.WriteAllBytes(file, content);
        RocksDbException error = Assert.Throws<RocksDbException>(() =>
        {
            using RocksDatabase database = Open();
            Walk(database);
        });
        Assert.Contains("checksum", error.Message, StringComparison.OrdinalIgnoreCase);
        Assert.Contains(Path.GetFileName(file), error.Message, StringComparison.Ordinal);
        Assert.True(error.Corruption);
    }

    [Theory]
    [InlineData("IO error: No space left on device: While appending to file: state/000012.sst: No space left on device", true, false)]
    [InlineData("IO error: While appending to file: state/000012.sst: Disk quota exceeded", true, false)]
    [InlineData("IO error: While fsync: state/000012.sst: Input/output error", false, false)]
    [InlineData("Corruption: block checksum mismatch: stored = 1, computed = 2 in state/000012.sst", false, true)]
    public void Kinds_of_errors_are_told_apart_by_their_text(string text, bool noSpace, bool corruption)
    {
        RocksDbException error = new(text);
        Assert.Equal(noSpace, error.NoSpace);
        Assert.Equal(corruption, error.Corruption);
    }

    [Fact]
    public void Opening_and_closing_thousands_of_times_leaves_nothing_behind()
    {
        using (RocksDatabase database = Open())
        {
            Ingest(database, Stage("key=value"));
        }

        for (int i = 0; i < 300; i++)
        {
            OpenAndClose();
        }

        // What leaks grows in every quarter; what other tests of this process hold for a while does not.
        int opened = 0;
        int descriptorsLeast = int.MaxValue;
        long bytesLeast = long.MaxValue;
        for (int quarter = 0; quarter < 4; quarter++)
        {
            (int descriptors, long bytes) = Held();
            Repeats opens = new(OpensWithoutGrowth / 4, OpensWithoutGrowth / 20, share: 20);
            while (opens.Next())
            {
                OpenAndClose();
            }

            opened += opens.Done;

            (int descriptorsAfter, long bytesAfter) = Held();
            descriptorsLeast = Math.Min(descriptorsLeast, descriptorsAfter - descriptors);
            bytesLeast = Math.Min(bytesLeast, bytesAfter - bytes);
        }

        output.WriteLine(
            $"Checked: {opened} times opened and closed; {bytesLeast >> 10} KiB and {descriptorsLeast} descriptors "
                + $"more in the quarter that grew least");
        Assert.InRange(descriptorsLeast, int.MinValue, 10);
        Assert.InRange(bytesLeast, long.MinValue, 4L << 20);
    }

    private static (int Descriptors, long Bytes) Held()
    {
        GC.Collect();
        GC.WaitForPendingFinalizers();
        using System.Diagnostics.Process self = System.Diagnostics.Process.GetCurrentProcess();
        return (OperatingSystem.IsLinux() ? Directory.GetFiles("/proc/self/fd").Length : 0, self.WorkingSet64);
    }

    private static string Walk(RocksDatabase database)
    {
        using ReadOptions read = new ReadOptions().SetVerifyChecksums(true).SetFillCache(false).SetReadaheadSize(
            1 << 20);
        using Iterator iterator = database.NewIterator(read);
        List<string> pairs = [];
        for (iterator.SeekToFirst(); iterator.Valid(); iterator.Next())
        {
            pairs.Add($"{Encoding.UTF8.GetString(iterator.Key)}={Encoding.UTF8.GetString(iterator.Value)}");
        }

        return string.Join(' ', pairs);
    }

    private void OpenAndClose()
    {
        using RocksDatabase database = Open();
        using EnvOptions files = new();
        using IngestExternalFileOptions ingest = new();
        using DbOptions options = new();
        using SstFileWriter writer = new(files, options);
        using Iterator iterator = database.NewIterator(_read);
        Assert.True(iterator.SeekToFirst().Valid());
    }

    private void Ingest(RocksDatabase database, params string[] files) => database.IngestExternalFiles(files, _ingest);

    private string Stage(params string[] pairs) => Stage(file =>
    {
        foreach (string pair in pairs)
        {
            string[] parts = pair.Split('=');
            file.Put(Encoding.UTF8.GetBytes(parts[0]), Encoding.UTF8.GetBytes(parts[1]));
        }
    });

    private string Stage(Action<SstFileWriter> write)
    {
        string folder = Path.Combine(_directory, "staged");
        Directory.CreateDirectory(folder);
        string path = Path.Combine(folder, $"{++_staged}.sst");
        using DbOptions options = new();
        using SstFileWriter file = new(_files, options);
        write(file.Open(path));
        file.Finish();
        return path;
    }

    private RocksDatabase Open(string? directory = null)
    {
        using DbOptions options = new DbOptions()
            .SetCreateIfMissing()
            .SetParanoidChecks()
            .SetWriteBufferSize(1 << 16)
            .SetDisableAutoCompactions()
            .SetLevel0Triggers(1 << 20, 1 << 20, 1 << 20)
            .SetMaxOpenFiles(-1)
            .SetCompression(Compression.No)
            .SetInfoLogLevel(3)
            .SetInfoLogFiles(1)
            .SetBytesPerSync(1 << 20)
            .SetBlocks(1 << 14, 1 << 20, format: 5);
        Directory.CreateDirectory(directory ?? _directory);
        return RocksDatabase.Open(options, directory ?? _directory);
    }
}
