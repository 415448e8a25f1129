using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;

namespace Kahuna.Tests.Storage;

/// <summary>
/// One write and one sync persist the batches of all writers; each writer is notified once, of its highest batch.
/// </summary>
public sealed class GroupCommitTests
{
    [Fact]
    public void OneSyncForAllWriters()
    {
        LogFixture fixture = new LogFixture().Open();
        RecordingSink secondSink = new();
        ILogWriter second = fixture.Log.OpenWriter(secondSink);
        int before = fixture.Disk.Syncs;

        fixture.Writer.Append(LogFixture.One, new LogIndex(1), 1, LogFixture.Entries(1, "a"));
        Assert.Equal(1UL, fixture.Writer.Submit());
        second.Append(LogFixture.Two, new LogIndex(1), 1, LogFixture.Entries(1, "x"));
        second.Save(LogFixture.Two, new HardState(new Term(1), new NodeId(2), default));
        Assert.Equal(1UL, second.Submit());
        fixture.Writer.Append(LogFixture.One, new LogIndex(2), 1, LogFixture.Entries(1, "b"));
        Assert.Equal(2UL, fixture.Writer.Submit());
        Assert.Equal((2, 1), (fixture.Writer.Pending, second.Pending));

        Assert.True(fixture.Log.CommitOnce());
        Assert.Equal(before + 1, fixture.Disk.Syncs);
        Assert.Equal([2UL], fixture.Sink.Reports);
        Assert.Equal([1UL], secondSink.Reports);
        Assert.Equal((0, 0), (fixture.Writer.Pending, second.Pending));
        Assert.False(fixture.Log.CommitOnce());

        fixture.Disk.Crash();
        fixture.Open();
        Assert.Equal(["1:a", "1:b"], fixture.All(LogFixture.One));
        Assert.Equal(["1:x"], fixture.All(LogFixture.Two));
        Assert.Equal(new NodeId(2), fixture.Log.Recovered(LogFixture.Two).HardState.Vote);
    }

    [Fact]
    public void AnEmptyBatchIsNoBatch()
    {
        LogFixture fixture = new LogFixture().Open();
        Assert.Equal(0UL, fixture.Writer.Submit());
        Assert.Equal(0, fixture.Writer.Pending);
        Assert.False(fixture.Log.CommitOnce());
    }

    [Fact]
    public void NothingIsReportedBeforeTheSync()
    {
        LogFixture fixture = new LogFixture().Open();
        List<int> reportsAtSync = [];
        fixture.Disk.Fault = (step, _) =>
        {
            if (step == DiskStep.SyncData)
            {
                reportsAtSync.Add(fixture.Sink.Reports.Length);
            }

            return 0;
        };
        fixture.Append(LogFixture.One, 1, 1, "a");
        Assert.Equal(0, reportsAtSync[0]);
        Assert.Single(fixture.Sink.Reports);
    }

    [Fact]
    public void TheIdleMarkIsWrittenOnce()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "a");
        int before = fixture.Disk.Syncs;
        fixture.Log.MarkIdle();
        fixture.Log.MarkIdle();
        Assert.Equal(before + 1, fixture.Disk.Syncs);
    }

    [Fact]
    public void MoreThanOneWriteTakesIsLeftForTheNext()
    {
        LogFixture fixture = new(segmentBytes: 1 << 20);
        fixture.Options = fixture.Options with { WriteBytesMax = 10_000 };
        fixture.Open();
        for (ulong i = 1; i <= 5; i++)
        {
            fixture.Writer.Append(LogFixture.One, new LogIndex(i), 1, LogFixture.Entries(1, new string('x', 4000)));
            fixture.Writer.Submit();
        }

        while (fixture.Log.CommitOnce())
        {
        }

        Assert.Equal([2UL, 4UL, 5UL], fixture.Sink.Reports);
    }

    [Fact]
    public void WritesOfAnyNumberOfWritersAreOneBatch()
    {
        LogFixture fixture = new LogFixture(segmentBytes: 1 << 20).Open();
        for (uint i = 1; i <= 200; i++)
        {
            ILogWriter writer = fixture.Log.OpenWriter(new RecordingSink());
            writer.Append(new GroupId(i), new LogIndex(1), 1, LogFixture.Entries(i, $"of {i}"));
            writer.Submit();
        }

        int before = fixture.Disk.Syncs;
        Assert.True(fixture.Log.CommitOnce());
        Assert.Equal(before + 1, fixture.Disk.Syncs);
        fixture.Reopen();
        Assert.Equal(["200:of 200"], fixture.All(new GroupId(200)));
    }

    [Fact]
    public void TheShellIsWokenForEachKindOfWork()
    {
        LogFixture fixture = new LogFixture().Open();
        CountingShell shell = new();
        fixture.Log.Attach(shell);
        Assert.Equal((0, 1, 0), shell.Counts);
        fixture.Append(LogFixture.One, 1, 1, "a");
        fixture.Writer.Fetch(LogFixture.One, new NodeId(2), new LogIndex(1), 1);
        Assert.Equal((1, 1, 1), shell.Counts);
    }

    private sealed class CountingShell : ILogShell
    {
        public (int Commit, int Prepare, int Fetch) Counts { get; private set; }

        public void WakeCommit() => Counts = Counts with { Commit = Counts.Commit + 1 };

        public void WakePrepare() => Counts = Counts with { Prepare = Counts.Prepare + 1 };

        public void WakeFetch() => Counts = Counts with { Fetch = Counts.Fetch + 1 };
    }
}
