using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;

namespace Kahuna.Tests.Storage;

/// <summary>
/// Which segments are dropped from the front of the log, which stay, and what stays known about dropped entries.
/// </summary>
public sealed class LogCutTests
{
    /// <summary>One entry of this size fills a segment.</summary>
    private const int LargeBytes = 11_000;

    [Fact]
    public void ReleasedSegmentsGoBeyondWhatIsKept()
    {
        LogFixture fixture = Filled(10, keepBytes: 3 * 16 * 1024);
        long before = fixture.Log.Bytes;
        Assert.Equal(10, fixture.Log.Segments);
        fixture.Release(LogFixture.One, 4);
        Assert.Equal((6, new LogIndex(4)), (fixture.Log.Segments, fixture.Log.StartOf(LogFixture.One)));
        Assert.Equal(before - (4 * 16 * 1024), fixture.Log.Bytes);

        // Without the seventh segment the log would be smaller than what it must keep.
        fixture.Release(LogFixture.One, 10);
        Assert.Equal((4, new LogIndex(6)), (fixture.Log.Segments, fixture.Log.StartOf(LogFixture.One)));
        Assert.InRange(fixture.Log.Bytes, 3 * 16 * 1024, 4 * 16 * 1024);

        // It never goes back.
        fixture.Release(LogFixture.One, 1);
        AppendLarge(fixture, 11);
        Assert.Equal(new LogIndex(7), fixture.Log.StartOf(LogFixture.One));
        fixture.ReopenWithoutDropped();
        Assert.Equal(["8", "9", "10", "11"], fixture.All(LogFixture.One).Select(text => text.Split(':')[0]));
    }

    [Fact]
    public void TheSegmentThatIsWrittenStays()
    {
        LogFixture fixture = Filled(5, keepBytes: 0);
        fixture.Release(LogFixture.One, 5);
        Assert.Equal((1, new LogIndex(4)), (fixture.Log.Segments, fixture.Log.StartOf(LogFixture.One)));
        Assert.Single(fixture.Fetch(LogFixture.One, 5));
        Assert.Empty(fixture.Fetch(LogFixture.One, 4));
        Assert.Empty(fixture.Fetch(LogFixture.One, 1));
        Assert.Null(fixture.Log.Failure);
    }

    [Fact]
    public void AGroupThatHasStoppedKeepsItsEntriesWhileTheLogIsSmall()
    {
        LogFixture fixture = new(keepBytes: 0);
        fixture.Options = fixture.Options with { LogLimitBytes = 16 * 16 * 1024 };
        fixture.Open();
        fixture.Append(LogFixture.Two, 1, 7, "evidence");
        fixture.Log.Abandon(LogFixture.Two);
        ulong last = 0;
        while (fixture.Log.Segments < 6)
        {
            AppendLarge(fixture, ++last);
        }

        fixture.Release(LogFixture.One, last);
        Assert.Single(fixture.Fetch(LogFixture.Two, 1));
        Assert.Equal(6, fixture.Log.Segments);
        while (last < 40)
        {
            AppendLarge(fixture, ++last);
            fixture.Release(LogFixture.One, last);
            Assert.Null(fixture.Log.RefuseWrites);
            Assert.InRange(fixture.Log.Segments, 1, 10);
        }
    }

    [Fact]
    public void AGroupThatReleasedNothingKeepsItsEntriesOnly()
    {
        LogFixture fixture = new LogFixture(keepBytes: 0).Open();
        fixture.Save(LogFixture.Two, 7, 3, 0);
        AppendLarge(fixture, 1);
        AppendLarge(fixture, 2);
        fixture.Append(LogFixture.Two, 1, 7, "b");
        for (ulong i = 3; i <= 6; i++)
        {
            AppendLarge(fixture, i);
        }

        fixture.Release(LogFixture.One, 6);
        Assert.Equal(new LogIndex(1), fixture.Log.StartOf(LogFixture.One));
        fixture.Reopen();
        Assert.Equal(["7:b"], fixture.All(LogFixture.Two));
        fixture.Release(LogFixture.One, 6);
        Assert.Equal(new LogIndex(1), fixture.Log.StartOf(LogFixture.One));
        fixture.Release(LogFixture.Two, 1);
        Assert.Equal(new LogIndex(5), fixture.Log.StartOf(LogFixture.One));
    }

    [Fact]
    public void ASilentGroupIsKnownWithoutItsSegments()
    {
        LogFixture fixture = new LogFixture(keepBytes: 0).Open();
        fixture.Append(LogFixture.Two, 1, 4, "a", "b");
        fixture.Append(LogFixture.Two, 3, 5, "c");
        fixture.Save(LogFixture.Two, 6, 2, 3);
        fixture.Release(LogFixture.Two, 3);
        for (ulong i = 1; i <= 5; i++)
        {
            AppendLarge(fixture, i);
            fixture.Release(LogFixture.One, i);
        }

        Assert.Equal(new LogIndex(3), fixture.Log.StartOf(LogFixture.Two));
        Assert.Equal(0, fixture.Log.BytesSince(LogFixture.Two, new LogIndex(3)));
        for (int i = 0; i < 3; i++)
        {
            fixture.ReopenWithoutDropped();
            RecoveredGroup found = fixture.Log.Recovered(LogFixture.Two);
            Assert.Equal(
                (new LogIndex(3), new LogIndex(3), new Term(5)), (found.LastIndex, found.Start, found.StartTerm));
            Assert.Empty(found.Terms);
            Assert.Equal(new HardState(new Term(6), new NodeId(2), new LogIndex(3)), found.HardState);

            // It pins nothing, although nothing was released since the start.
            AppendLarge(fixture, (ulong)i + 6);
            fixture.Release(LogFixture.One, (ulong)i + 6);
            Assert.Equal(1, fixture.Log.Segments);
        }

        fixture.Append(LogFixture.Two, 4, 6, "d");
        fixture.Reopen();
        Assert.Equal(["6:d"], fixture.All(LogFixture.Two));
        Assert.Equal([new TermRun(new LogIndex(4), new Term(6))], fixture.Log.Recovered(LogFixture.Two).Terms);
    }

    [Fact]
    public void OverwrittenEntriesNeedNoRelease()
    {
        LogFixture fixture = new LogFixture(keepBytes: 0).Open();
        fixture.Append(LogFixture.One, 1, 1, "a", "b");
        AppendLarge(fixture, 3);
        AppendLarge(fixture, 4);
        fixture.Append(LogFixture.One, 3, 5, new string('c', LargeBytes));
        fixture.Release(LogFixture.One, 2);
        Assert.Equal(1, fixture.Log.Segments);
        Assert.Equal(new LogIndex(2), fixture.Log.StartOf(LogFixture.One));

        fixture.ReopenWithoutDropped();
        RecoveredGroup found = fixture.Log.Recovered(LogFixture.One);
        Assert.Equal((new LogIndex(2), new LogIndex(3)), (found.Start, found.LastIndex));

        // The segment's checkpoint names the entry that was overwritten in it; the term of entry 2 lies in a segment
        // that is gone.
        Assert.Equal(default, found.StartTerm);
        Assert.Equal([new TermRun(new LogIndex(3), new Term(5))], found.Terms);
    }

    [Fact]
    public void TermsGoWithTheirEntries()
    {
        LogFixture fixture = new LogFixture(keepBytes: 0).Open();
        for (ulong i = 1; i <= 6; i++)
        {
            // Terms 1, 1, 2, 2, 3, 3.
            fixture.Append(LogFixture.One, i, (i + 1) / 2, new string('x', LargeBytes));
        }

        (ulong, ulong, ulong[])[] cuts = [(1, 1, [1, 2, 3]), (2, 1, [2, 3]), (3, 2, [2, 3]), (5, 3, [3])];
        foreach ((ulong released, ulong startTerm, ulong[] terms) in cuts)
        {
            fixture.Release(LogFixture.One, released);
            fixture.ReopenWithoutDropped();
            RecoveredGroup found = fixture.Log.Recovered(LogFixture.One);
            Assert.Equal((new LogIndex(released), new Term(startTerm)), (found.Start, found.StartTerm));
            Assert.Equal(terms, found.Terms.Select(run => run.Term.Value));
            Assert.Equal(released + 1, found.Terms[0].First.Value);
        }
    }

    [Fact]
    public void BytesSinceAnEntryAreThoseOfAllGroups()
    {
        LogFixture fixture = new LogFixture(keepBytes: 0).Open();
        Assert.Equal(0, fixture.Log.BytesSince(LogFixture.One, default));
        AppendLarge(fixture, 1);
        fixture.Append(LogFixture.Two, 1, 1, "b");
        AppendLarge(fixture, 2);
        AppendLarge(fixture, 3);
        Assert.Equal(0, fixture.Log.BytesSince(LogFixture.One, new LogIndex(3)));
        Assert.InRange(fixture.Log.BytesSince(LogFixture.One, new LogIndex(2)), LargeBytes, LargeBytes + 500);
        Assert.InRange(
            fixture.Log.BytesSince(LogFixture.Two, default), LargeBytes + (16 * 1024), (3 * 16 * 1024) - LargeBytes);
        fixture.Release(LogFixture.One, 1);
        fixture.Release(LogFixture.Two, 1);
        Assert.Equal(2, fixture.Log.Segments);

        // A dropped entry counts as the whole log away.
        Assert.Equal(fixture.Log.Bytes, fixture.Log.BytesSince(LogFixture.Two, default));
        Assert.Equal(fixture.Log.Bytes, fixture.Log.BytesSince(LogFixture.One, default));
        Assert.Equal(0, fixture.Log.BytesSince(LogFixture.Two, new LogIndex(1)));
    }

    [Fact]
    public void AQuietGroupAmongBusyOnesIsMeasuredClosely()
    {
        LogFixture fixture = new LogFixture(segmentBytes: 8 << 20).Open();
        for (ulong i = 1; i <= 40; i++)
        {
            fixture.Append(LogFixture.One, i, 1, new string('x', 100_000));
            fixture.Append(LogFixture.Two, i, 1, "quiet");
        }

        Assert.InRange(fixture.Log.BytesSince(LogFixture.Two, new LogIndex(39)), 1, 1_300_000);
    }

    [Fact]
    public void CuttingTakesTheRefusalAway()
    {
        LogFixture fixture = new(keepBytes: long.MaxValue);
        fixture.Options = fixture.Options with { LogLimitBytes = 100_000 };
        fixture.Open();
        ulong index = 0;
        while (fixture.Log.RefuseWrites is null)
        {
            AppendLarge(fixture, ++index);
        }

        // However much is to be kept for others: half of the limit has to do.
        fixture.Release(LogFixture.One, index);
        Assert.Null(fixture.Log.RefuseWrites);
        Assert.InRange(fixture.Log.Bytes, 50_000, 50_000 + (16 * 1024));
        AppendLarge(fixture, ++index);
        Assert.Null(fixture.Log.RefuseWrites);
    }

    [Fact]
    public void BelowASmallLimitSegmentsAreSmaller()
    {
        SegmentedLogOptions options = new() { LogLimitBytes = 1_000_000 };
        Assert.InRange(options.CapacityOf(1), 200_000, 250_000);
        Assert.Equal(options.CapacityOf(1), options.CapacityOf(100));
        Assert.Equal(64 << 20, new SegmentedLogOptions().CapacityOf(100));
        Assert.Equal(4 << 20, new SegmentedLogOptions().CapacityOf(1));
    }

    [Fact]
    public void FilesAreUsedAgainAndNoMoreThanTwoWait()
    {
        LogFixture fixture = Filled(8, keepBytes: 0);
        fixture.Release(LogFixture.One, 7);

        // The one that is written, the next one, and two of the seven that went.
        Assert.Equal([6UL, 7UL, 8UL, 9UL], fixture.SegmentsOnDisk);
        AppendLarge(fixture, 9);
        Assert.Equal([7UL, 8UL, 9UL, 10UL], fixture.SegmentsOnDisk);
        Assert.True(SegmentHeader.Read(fixture.Disk.Content(LogFixture.SegmentPath(10)), out _)!.Value.Recycled);
        fixture.Reopen();
        Assert.Equal("9", fixture.All(LogFixture.One)[^1].Split(':')[0]);
    }

    [Fact]
    public void ASegmentThatCannotBeRemovedIsTriedAgainAndNoneBeforeIt()
    {
        LogFixture fixture = Filled(8, keepBytes: 0);
        fixture.Disk.Fault = static (step, _) => step == DiskStep.Delete
            ? Server.Storage.Disk.DiskException.InputOutputError
            : 0;
        fixture.Release(LogFixture.One, 7);
        Assert.Contains(
            "is no longer needed, could not be removed (Input/output error (EIO))",
            fixture.Log.RefuseWrites,
            StringComparison.Ordinal);
        Assert.Equal(9, fixture.SegmentsOnDisk.Length);
        fixture.Disk.Fault = null;
        fixture.Log.CheckSpace();
        fixture.Log.PrepareOnce();
        Assert.Null(fixture.Log.RefuseWrites);
        Assert.Equal([6UL, 7UL, 8UL, 9UL], fixture.SegmentsOnDisk);
    }

    [Fact]
    public void WithoutItsFirstBatchTheFirstSegmentIsDamaged()
    {
        LogFixture fixture = Filled(4, keepBytes: 0);
        fixture.Release(LogFixture.One, 3);
        AppendLarge(fixture, 5);
        fixture.Disk.Kill();
        foreach (ulong segment in fixture.SegmentsOnDisk.Where(segment => segment < 5))
        {
            fixture.Disk.Delete(LogFixture.SegmentPath(segment));
        }

        fixture.Disk.Change(LogFixture.SegmentPath(5), bytes => bytes[SegmentHeader.Bytes + 60] ^= 1);
        LogDamagedException error = Assert.Throws<LogDamagedException>(() => new LogFixture(fixture.Disk).Open());
        Assert.Equal((LogFixture.SegmentPath(5), (long)SegmentHeader.Bytes), (error.File, error.Offset));
    }

    [Fact]
    public void ACheckpointThatDisagreesWithTheRecordsBeforeIsDamage()
    {
        LogFixture fixture = Filled(3, keepBytes: 0);
        fixture.Disk.Kill();
        int record = SegmentHeader.Bytes + LogRecord.BatchBytes;
        fixture.Disk.Change(LogFixture.SegmentPath(3), bytes =>
        {
            int payload = BitConverter.ToInt32(bytes, record + 4);
            bytes[record + RecordHeader.Bytes + LogRecord.HardStateBytes]++;
            uint seal = new SegmentHeader(77, 3, 0, false).Seal;
            BitConverter.TryWriteBytes(
                bytes.AsSpan(record), Crc32C.Of(bytes.AsSpan(record + 4, RecordHeader.Bytes + payload - 4)) ^ seal);
        });
        LogDamagedException error = Assert.Throws<LogDamagedException>(() => new LogFixture(fixture.Disk).Open());
        Assert.Equal((LogFixture.SegmentPath(3), (long)record), (error.File, error.Offset));
        Assert.Contains(
            "the checkpoint says that the last entry of group 1 is 3, and the records before end at 2",
            error.Message,
            StringComparison.Ordinal);
    }

    /// <summary>A log of <paramref name="segments"/> segments, each with one large entry.</summary>
    private static LogFixture Filled(ulong segments, long keepBytes)
    {
        LogFixture fixture = new LogFixture(keepBytes: keepBytes).Open();
        for (ulong i = 1; i <= segments; i++)
        {
            AppendLarge(fixture, i);
        }

        return fixture;
    }

    /// <summary>An entry whose term is its index.</summary>
    private static void AppendLarge(LogFixture fixture, ulong index) =>
        fixture.Append(LogFixture.One, index, index, new string('x', LargeBytes));
}
