using System.Text;
using Kahuna.Server.Storage.RocksDb;
using Xunit.Abstractions;

namespace Kahuna.Tests.Storage.RocksDb;

/// <summary>The interop on the real library: what is flushed is there, what fails says so, and nothing is left behind.</summary>
public sealed class RocksDbTests(ITestOutputHelper output) : IDisposable
{
    private const string Other = "other";
    private const int OpensWithoutGrowth = 10_000;

    /// <summary>In memory where there is such a place: ten thousand times opening and closing is not about the disk.</summary>
    private readonly string _directory = Path.Combine(Directory.Exists("/dev/shm") ? "/dev/shm" : Path.GetTempPath(), "kahuna-rocksdb-" + Guid.NewGuid().ToString("N"));

    private readonly ReadOptions _read = new ReadOptions().SetVerifyChecksums(true);
    private readonly WriteOptions _write = new WriteOptions().DisableWal(true);
    private readonly FlushOptions _flush = new FlushOptions().SetWaitForFlush(true);

    public void Dispose()
    {
        _read.Dispose();
        _write.Dispose();
        _flush.Dispose();
        if (Directory.Exists(_directory))
        {
            Directory.Delete(_directory, recursive: true);
        }
    }

    [Fact]
    public void Batch_is_read_back_and_walked_in_order()
    {
        using RocksDatabase database = Open();
        ColumnFamilyHandle family = database.GetColumnFamily("default");
        using WriteBatch batch = new();
        batch.Put("b"u8, "2"u8, family).Put("a"u8, "1"u8, family).Put("c"u8, default, family).Put("a"u8, "other"u8, database.GetColumnFamily(Other));
        Assert.Equal(4, batch.Count);
        database.Write(batch, _write);
        Assert.Equal("1"u8.ToArray(), database.Get("a"u8, family, _read)!);
        Assert.Equal([], database.Get("c"u8, family, _read)!);
        Assert.Null(database.Get("d"u8, family, _read));

        database.Write(batch.Clear().Delete("b"u8, family), _write);
        Assert.Equal("a=1 c=", Walk(database, family));
        using Iterator iterator = database.NewIterator(family, _read);
        Assert.Equal("c"u8, iterator.Seek("b"u8).Key);
        Assert.False(iterator.Next().Valid());
    }

    [Fact]
    public void Flushed_data_is_there_after_reopening()
    {
        using (RocksDatabase database = Open())
        {
            Put(database, "default", "kept", "1");
            database.Flush(database.GetColumnFamily("default"), _flush);
        }

        using RocksDatabase again = Open();
        Assert.Equal("1"u8.ToArray(), again.Get("kept"u8, again.GetColumnFamily("default"), _read)!);
        Assert.NotNull(again.GetProperty("rocksdb.total-sst-files-size"));
        Assert.Null(again.GetProperty("rocksdb.no-such-property"));
    }

    /// <summary>What durability without RocksDB's own log rests on: the copy is what a crash would leave.</summary>
    [Fact]
    public void Only_a_flush_makes_durable_and_a_batch_is_durable_as_a_whole_within_its_family()
    {
        using RocksDatabase database = Open();
        ColumnFamilyHandle family = database.GetColumnFamily("default");
        using WriteBatch batch = new();
        database.Write(batch.Put("a"u8, "1"u8, family).Put("b"u8, "1"u8, family).Put("c"u8, "1"u8, database.GetColumnFamily(Other)), _write);
        database.Flush(family, _flush);
        database.Write(batch.Clear().Put("a"u8, "2"u8, family), _write);
        string copy = _directory + "-copy";
        Directory.CreateDirectory(copy);
        try
        {
            foreach (string file in Directory.GetFiles(_directory))
            {
                File.Copy(file, Path.Combine(copy, Path.GetFileName(file)));
            }

            using RocksDatabase crashed = Open(copy);
            Assert.Equal("a=1 b=1", Walk(crashed, crashed.GetColumnFamily("default")));
            Assert.Equal("", Walk(crashed, crashed.GetColumnFamily(Other)));
        }
        finally
        {
            Directory.Delete(copy, recursive: true);
        }
    }

    [Fact]
    public void Snapshot_does_not_see_what_came_later()
    {
        using RocksDatabase database = Open();
        Put(database, "default", "key", "before");
        using Snapshot snapshot = database.CreateSnapshot();
        Put(database, "default", "key", "after");
        using ReadOptions then = new ReadOptions().SetSnapshot(snapshot);
        Assert.Equal("before"u8.ToArray(), database.Get("key"u8, database.GetColumnFamily("default"), then)!);
        Assert.Equal("after"u8.ToArray(), database.Get("key"u8, database.GetColumnFamily("default"), _read)!);
    }

    [Fact]
    public void Iterator_and_snapshot_may_outlive_the_database_handle()
    {
        RocksDatabase database = Open();
        Put(database, "default", "key", "value");
        Iterator iterator = database.NewIterator(database.GetColumnFamily("default"), _read);
        Snapshot snapshot = database.CreateSnapshot();
        database.Dispose();
        Assert.Equal("value"u8, iterator.SeekToFirst().Value);
        iterator.Dispose();
        snapshot.Dispose();
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
            for (int i = 0; i < 200; i++)
            {
                Put(database, "default", $"key{i:D4}", new string('v', 100));
            }

            database.Flush(database.GetColumnFamily("default"), _flush);
        }

        string file = Assert.Single(Directory.GetFiles(_directory, "*.sst"));
        byte[] content = File.ReadAllBytes(file);
        content[content.Length / 4] ^= 0x10;
        File.WriteAllBytes(file, content);
        RocksDbException error = Assert.Throws<RocksDbException>(() =>
        {
            using RocksDatabase database = Open();
            Walk(database, database.GetColumnFamily("default"));
        });
        Assert.Contains("checksum", error.Message, StringComparison.OrdinalIgnoreCase);
        Assert.Contains(Path.GetFileName(file), error.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void Opening_and_closing_ten_thousand_times_leaves_nothing_behind()
    {
        for (int i = 0; i < 500; i++)
        {
            OpenAndClose();
        }

        (int descriptors, long bytes) = Held();
        for (int i = 0; i < OpensWithoutGrowth; i++)
        {
            OpenAndClose();
        }

        (int descriptorsAfter, long bytesAfter) = Held();
        output.WriteLine($"Checked: {OpensWithoutGrowth} times opened and closed, {(bytesAfter - bytes) >> 10} KiB more, {descriptorsAfter - descriptors} descriptors more");
        Assert.InRange(descriptorsAfter - descriptors, -1000, 10);
        Assert.InRange(bytesAfter - bytes, long.MinValue, 64L << 20);
    }

    private static (int Descriptors, long Bytes) Held()
    {
        GC.Collect();
        GC.WaitForPendingFinalizers();
        using System.Diagnostics.Process self = System.Diagnostics.Process.GetCurrentProcess();
        return (OperatingSystem.IsLinux() ? Directory.GetFiles("/proc/self/fd").Length : 0, self.WorkingSet64);
    }

    private static string Walk(RocksDatabase database, ColumnFamilyHandle family)
    {
        using ReadOptions read = new ReadOptions().SetVerifyChecksums(true).SetFillCache(false).SetReadaheadSize(1 << 20);
        using Iterator iterator = database.NewIterator(family, read);
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
        using WriteBatch batch = new();
        database.Write(batch.Put("key"u8, "value"u8, database.GetColumnFamily(Other)), _write);
        using Iterator iterator = database.NewIterator(database.GetColumnFamily(Other), _read);
        Assert.True(iterator.SeekToFirst().Valid());
    }

    private void Put(RocksDatabase database, string family, string key, string value)
    {
        using WriteBatch batch = new();
        database.Write(batch.Put(Encoding.UTF8.GetBytes(key), Encoding.UTF8.GetBytes(value), database.GetColumnFamily(family)), _write);
    }

    private RocksDatabase Open(string? directory = null)
    {
        using DbOptions options = new DbOptions()
            .SetCreateIfMissing()
            .SetCreateMissingColumnFamilies()
            .SetAtomicFlush()
            .SetParanoidChecks()
            .SetWriteBufferSize(1 << 20)
            .SetMaxBackgroundJobs(2)
            .SetMaxOpenFiles(-1)
            .SetCompression(Compression.No)
            .SetInfoLogLevel(3)
            .SetInfoLogFiles(1 << 20, 1)
            .SetBytesPerSync(1 << 20)
            .SetBlockCache(1 << 20)
            .SetRateLimit(64 << 20);
        return RocksDatabase.Open(options, directory ?? _directory, "default", Other);
    }
}
