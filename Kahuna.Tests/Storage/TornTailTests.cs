using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Storage;

/// <summary>
/// The last batch, written but not synced, may be there in any part: it is cut, all of it, and nothing of it ever comes
/// back.
/// </summary>
public sealed class TornTailTests
{
    private static readonly string[] s_kept = ["1:a", "1:b"];
    private static readonly string[] s_whole = ["1:a", "1:b", "2:last one", "2:and another"];

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void CutOrGarbledAtEachByteOfTheLastBatch(bool garbled)
    {
        (ModelDisk disk, int start, int end) = Prepared();
        string path = LogFixture.SegmentPath(1);
        for (int at = start; at < end; at++)
        {
            ModelDisk copy = disk.Copy();
            if (garbled && copy.Content(path)[at] == 0x5A)
            {
                continue;
            }

            copy.Change(path, bytes =>
            {
                if (garbled)
                {
                    bytes[at] = 0x5A;
                }
                else
                {
                    bytes.AsSpan(at).Clear();
                }
            });
            LogFixture fixture = new LogFixture(copy).Open();
            bool paddingOnly = fixture.Lines.Count == 0;
            Assert.Equal(paddingOnly && IsWhole(fixture) ? s_whole : s_kept, fixture.All(LogFixture.One));
            if (!paddingOnly)
            {
                Assert.Contains($"{path}, offset {start}", Assert.Single(fixture.Lines), StringComparison.Ordinal);
                WriteOnAndReopen(fixture);
            }
        }
    }

    [Fact]
    public void WhatIsCutNeverComesBack()
    {
        // The torn batch lost its beginning only. The batches written over it later are shorter, and what they do not
        // cover must be gone.
        (ModelDisk disk, int start, int end) = Prepared();
        disk.Change(LogFixture.SegmentPath(1), bytes => bytes.AsSpan(start, 8).Clear());
        new LogFixture(disk).Open();
        Assert.All(disk.Content(LogFixture.SegmentPath(1))[(start + 64)..end], one => Assert.Equal(0, one));
    }

    [Fact]
    public void ATornFirstBatchOfASegmentIsCutToo()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, new string('a', 10_000));

        // Killed before the next segment is prepared, which records the batch.
        fixture.Writer.Append(LogFixture.One, new LogIndex(2), 1, LogFixture.Entries(1, new string('b', 10_000)));
        fixture.Writer.Submit();
        fixture.Log.CommitOnce();
        fixture.Disk.Kill();
        fixture.Disk.Change(LogFixture.SegmentPath(2), bytes => bytes[9_000] ^= 1);

        LogFixture again = new LogFixture(fixture.Disk).Open();
        Assert.Single(again.Lines);
        Assert.Single(again.All(LogFixture.One));
        again.Append(LogFixture.One, 2, 2, "c");
        again.Append(LogFixture.One, 3, 2, new string('d', 10_000));
        again.Reopen();
        Assert.Equal(["2:c"], again.Replay(LogFixture.One, 2, 2));
        Assert.Equal(3, again.All(LogFixture.One).Length);
    }

    [Fact]
    public void WhatAFailedSyncLeftReadableIsMadeStableByTheNextStart()
    {
        // The system keeps the pages of a failed sync readable and thinks them clean: reading them back proves nothing.
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "a");
        fixture.Disk.Fault = static (step, _) => step == DiskStep.SyncData
            ? Kahuna.Server.Storage.Disk.DiskException.InputOutputError
            : 0;
        fixture.Append(LogFixture.One, 2, 1, "b");
        Assert.NotEmpty(fixture.Sink.Failures);
        fixture.Disk.Fault = null;
        fixture.Disk.Kill();

        LogFixture again = new LogFixture(fixture.Disk).Open();
        Assert.Equal(["1:a", "1:b"], again.All(LogFixture.One));
        fixture.Disk.Crash();
        again.Open();
        Assert.Equal(["1:a", "1:b"], again.All(LogFixture.One));
    }

    private static bool IsWhole(LogFixture fixture) => fixture.Log.Recovered(LogFixture.One).LastIndex.Value == 4;

    private static void WriteOnAndReopen(LogFixture fixture)
    {
        fixture.Append(LogFixture.One, 3, 5, "n");
        fixture.Disk.Crash();
        fixture.Lines.Clear();
        fixture.Open();
        Assert.Empty(fixture.Lines);
        Assert.Equal(["1:a", "1:b", "5:n"], fixture.All(LogFixture.One));
    }

    /// <summary>A log of two batches, killed before a mark, and where the second one lies.</summary>
    private static (ModelDisk Disk, int Start, int End) Prepared()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "a", "b");
        string path = LogFixture.SegmentPath(1);
        int start = LastUsed(fixture.Disk.Content(path));
        fixture.Append(LogFixture.One, 3, 2, "last one", "and another");
        int end = LastUsed(fixture.Disk.Content(path));
        fixture.Disk.Kill();
        return (fixture.Disk, start, end);
    }

    private static int LastUsed(byte[] content) => (content.AsSpan().LastIndexOfAnyExcept((byte)0) + 8) / 8 * 8;
}
