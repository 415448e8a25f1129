using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;
using Kahuna.Server.Storage.Disk;
using Kahuna.Tests.Hosting.Membership;
using Kahuna.Tests.Partitions;
using Kahuna.Tests.Storage;

namespace Kahuna.Tests.Hosting;

/// <summary>
/// Real directories whose log, or whose record of it, is not what it was: they do not start, and the way out does.
/// </summary>
public sealed class DirectoryLogTests : IDisposable
{
    private static readonly GroupId s_group = new(1);

    private readonly Directories _directories = new();

    public void Dispose() => _directories.Dispose();

    [Fact]
    public async Task That_the_log_was_made_is_recorded_before_the_node_goes_on()
    {
        await FillAsync(1, batches: 0);

        Assert.True(_directories.Recorded(1).LogMade);
        Assert.Equal(["00000000000000000001.seg", "00000000000000000002.seg"], Segments(1).Select(Path.GetFileName));
    }

    [Fact]
    public async Task A_log_that_is_gone_is_refused()
    {
        await FillAsync(1);
        Directory.Delete(LogPath(1), recursive: true);
        await RefusedAsync(1, "(is a disk not mounted?)");
        Directory.CreateDirectory(LogPath(1));
        await RefusedAsync(1, "(is a disk not mounted?)");
        foreach (string file in new[] { "LOG", "FORMAT" })
        {
            File.Delete(Path.Combine(_directories.PathOf(1), file));
            await RefusedAsync(1, "(is a disk not mounted?)");
        }
    }

    [Theory]
    [InlineData(StateStoreChoice.Files)]
    [InlineData(StateStoreChoice.RocksDb)]
    internal async Task A_state_that_is_gone_is_refused(StateStoreChoice store)
    {
        NodeOptions options = _directories.Options(1) with { StateStore = store };
        await using (NodeStorage storage = await OpenAsync(options))
        {
            // The first five entries are in the stored state only.
            RecordingSink sink = new();
            ILogWriter writer = storage.Log.OpenWriter(sink);
            writer.Restart(s_group, new LogIndex(5), new Term(1));
            writer.Append(s_group, new LogIndex(6), 1, LogFixture.Entries(1, "after the state"));
            ulong last = writer.Submit();
            while (sink.Last < last)
            {
                await Task.Yield();
            }
        }

        Directory.Delete(
            Path.Combine(_directories.PathOf(1), DataDirectoryIdentity.StateDirectoryName), recursive: true);
        await using NodeStorage again = await OpenAsync(options);
        ModelCluster cluster = new(1);
        LoopPorts ports = new(1, TimeProvider.System, cluster, again.Log, null!, cluster[1])
        {
            States = again.States,
            Checkpoints = cluster[1].Keeper!,
            FatalErrors = RethrownErrors.Shared,
        };
        GroupRecovery recovery = new(
            s_group,
            new LoopOptions
            {
                Self = new NodeId(1),
                Voters = cluster.Ids,
                PreferredLeader = static _ => new NodeId(1),
                Seed = 1,
            },
            ports);
        recovery.LoadState();
        AssertRefusal(
            Assert.Throws<GroupUnusableException>(() => recovery.RecoverLog(static (_, _, _) => { })),
            "state/ in the data directory has no state of it (is a disk not mounted?)");
    }

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    public async Task Missing_newest_segments_are_refused(int missing)
    {
        await FillAsync(1);
        string[] segments = Segments(1);
        int recorded = (int)RecordedSegment(1);
        Assert.InRange(recorded, 4, segments.Length);

        // One more may have been prepared at the end that nothing knows of.
        Array.ForEach(segments[recorded..], File.Delete);
        segments = segments[..recorded];
        foreach (string segment in segments[^missing..])
        {
            File.Delete(segment);
        }

        await RefusedAsync(
            1,
            $"file {segments[^missing]}, offset 0: the file is missing, and the log had "
                + $"segments up to {segments.Length}");
    }

    [Fact]
    public async Task An_older_copy_of_a_segment_is_refused()
    {
        await FillAsync(1, batches: 1);
        string first = Segments(1)[0];
        byte[] older = await File.ReadAllBytesAsync(first);
        await FillAsync(1, batches: 1, from: 2);
        byte[] newer = await File.ReadAllBytesAsync(first);
        await File.WriteAllBytesAsync(first, older);
        await RefusedAsync(1, "was on stable storage");

        await File.WriteAllBytesAsync(first, newer);
        await FillAsync(1, batches: 12, from: 3);
        await File.WriteAllBytesAsync(first, older);
        await RefusedAsync(1, $"file {first}, offset");
    }

    [Theory]
    [InlineData(true, 12)]
    [InlineData(false, 12)]
    [InlineData(true, 1)]
    [InlineData(false, 1)]
    public async Task The_log_of_another_node_is_refused(bool withItsRecord, int batches)
    {
        await FillAsync(1);
        await FillAsync(2, batches);
        Directory.Delete(LogPath(1), recursive: true);
        Directory.Move(LogPath(2), LogPath(1));
        if (withItsRecord)
        {
            File.Copy(
                Path.Combine(_directories.PathOf(2), "LOG"),
                Path.Combine(_directories.PathOf(1), "LOG"),
                overwrite: true);
        }

        await RefusedAsync(1, $"{_directories.Recorded(2).LogId:x16}");
    }

    [Fact]
    public async Task A_record_from_before_a_rebuild_is_refused()
    {
        await FillAsync(1);
        string record = Path.Combine(_directories.PathOf(1), DataDirectoryIdentity.FileName);
        string older = await File.ReadAllTextAsync(record);
        _directories.Rebuild(1);
        await FillAsync(1);
        await File.WriteAllTextAsync(record, older);
        await RefusedAsync(1, "this data directory has log");
    }

    [Fact]
    public async Task A_record_from_before_the_log_was_made_does_no_harm()
    {
        DataDirectoryIdentity first = DataDirectoryIdentity.Open(_directories.Options(1));
        string record = Path.Combine(_directories.PathOf(1), DataDirectoryIdentity.FileName);
        string older = await File.ReadAllTextAsync(record);
        await FillAsync(1);
        await File.WriteAllTextAsync(record, older);
        await FillAsync(1, batches: 1, from: 13);
        Assert.Equal(first with { LogMade = true }, _directories.Recorded(1));
    }

    [Fact]
    public async Task A_log_without_a_record_of_its_directory_is_refused_until_it_is_rebuilt()
    {
        await FillAsync(1);
        File.Delete(Path.Combine(_directories.PathOf(1), DataDirectoryIdentity.FileName));
        Assert.Contains(
            "holds a log but no node.json",
            Assert.Throws<DataDirectoryException>(() => DataDirectoryIdentity.Open(_directories.Options(1))).Message,
            StringComparison.Ordinal);
        _directories.Rebuild(1);
        await FillAsync(1);
    }

    /// <summary>A refusal changes nothing, names the way out, and the way out works.</summary>
    private async Task RefusedAsync(ushort id, string words)
    {
        AssertRefusal(await Assert.ThrowsAnyAsync<Exception>(() => FillAsync(id, batches: 0)), words);
    }

    private static void AssertRefusal(Exception error, string words)
    {
        Assert.Contains(words, error.Message, StringComparison.Ordinal);
        Assert.Contains("start this node with --rebuild", error.Message, StringComparison.Ordinal);
        Assert.DoesNotContain("backup", error.Message, StringComparison.Ordinal);
        Assert.DoesNotContain('\n', error.Message);
    }

    private static Task<NodeStorage> OpenAsync(NodeOptions options) =>
        NodeStorage.OpenAsync(options, DataDirectoryIdentity.Open(options), RethrownErrors.Shared, static _ => { });

    /// <summary>The newest segment that the log's record names.</summary>
    private ulong RecordedSegment(ushort id)
    {
        SegmentedLogOptions options = new() { LogId = _directories.Recorded(id).LogId, LogMade = true };
        using LogExtentFile record = LogExtentFile.Open(
            new PosixDisk(), _directories.PathOf(id), options, hasSegments: true);
        return record.Latest.Segment;
    }

    private string LogPath(ushort id) => Path.Combine(_directories.PathOf(id), DataDirectory.LogName);

    private string[] Segments(ushort id) =>
        [.. Directory.EnumerateFiles(LogPath(id), "*.seg").Order(StringComparer.Ordinal)];

    /// <summary>
    /// A start of the node's storage that writes batches of a MiB with an entry each, one after the other, so that each
    /// segment holds some of them, and ends properly.
    /// </summary>
    private async Task FillAsync(ushort id, int batches = 12, ulong from = 1)
    {
        NodeOptions options = _directories.Options(id) with { LogKeepBytes = 1 << 20 };
        await using NodeStorage storage = await OpenAsync(options);
        RecordingSink sink = new();
        ILogWriter writer = storage.Log.OpenWriter(sink);
        for (int i = 0; i < batches; i++)
        {
            writer.Append(s_group, new LogIndex(from + (ulong)i), 1, LogFixture.Entries(1, new string('x', 1 << 20)));
            ulong batch = writer.Submit();
            while (sink.Last < batch)
            {
                await Task.Yield();
            }
        }

        while (!File.Exists(Path.Combine(LogPath(id), "00000000000000000002.seg")))
        {
            await Task.Yield();
        }
    }
}
