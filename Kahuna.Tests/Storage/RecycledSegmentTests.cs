using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Tests.Storage;

/// <summary>
/// A segment's file that is used again still holds the older segment's records; none of them is ever read.
/// </summary>
public sealed class RecycledSegmentTests
{
    [Fact]
    public void StaleRecordsAreNeverValid()
    {
        // Small batches over a file full of batches of the same sizes: stale batches begin exactly where the new ones
        // end.
        for (int batches = 0; batches < 12; batches++)
        {
            (ModelDisk disk, _) = Recycled(batches);
            LogFixture fixture = new LogFixture(disk).Open();
            Assert.Equal(Expected(batches), fixture.All(LogFixture.One)[^(batches + 1)..]);
            Assert.Empty(fixture.Lines);

            // The stale bytes are gone, and the segment continues.
            fixture.Append(LogFixture.One, fixture.Log.Recovered(LogFixture.One).LastIndex.Value + 1, 9, "on");
            fixture.Reopen();
            Assert.Equal("9:on", fixture.All(LogFixture.One)[^1]);
        }
    }

    [Fact]
    public void ATornWriteOverStaleRecordsIsCut()
    {
        (ModelDisk disk, ulong segment) = Recycled(3);
        byte[] content = disk.Content(LogFixture.SegmentPath(segment));
        int at = content.AsSpan().IndexOf("fresh 2"u8);
        disk.Change(LogFixture.SegmentPath(segment), bytes => bytes[at] ^= 1);
        LogFixture fixture = new LogFixture(disk).Open();
        Assert.Equal(Expected(2), fixture.All(LogFixture.One)[^3..]);
        Assert.Contains("cut an unfinished last write", Assert.Single(fixture.Lines), StringComparison.Ordinal);
    }

    [Fact]
    public void DamageAmongFreshRecordsIsRefused()
    {
        (ModelDisk disk, ulong segment) = Recycled(3);
        disk.Change(LogFixture.SegmentPath(segment), bytes => bytes[bytes.AsSpan().IndexOf("fresh 1"u8)] ^= 1);
        Assert.Equal(
            LogFixture.SegmentPath(segment),
            Assert.Throws<LogDamagedException>(() => new LogFixture(disk).Open()).File);
    }

    [Fact]
    public void AFileOfAnotherSizeIsNotUsedAgain()
    {
        LogFixture fixture = Filled(out ulong last);
        using SegmentPreparer preparer = fixture.NewPreparer(
            fixture.Options with { SegmentBytes = 32 * 1024, FirstSegmentBytes = 32 * 1024 });
        preparer.Retire(1);
        using IDiskFile file = preparer.Take(last + 1);
        byte[] content = fixture.Disk.Content(LogFixture.SegmentPath(last + 1));
        Assert.Equal(32 * 1024, content.Length);
        Assert.Equal(-1, content.AsSpan(SegmentHeader.Bytes).IndexOfAnyExcept((byte)0));
        Assert.DoesNotContain(LogFixture.SegmentPath(1), fixture.Disk.Files);
    }

    [Fact]
    public void ACrashAtAnyStepOfRecyclingLeavesALogThatOpens()
    {
        for (int failing = 0; failing < 6; failing++)
        {
            for (int seed = 0; seed < 20; seed++)
            {
                LogFixture fixture = Filled(out ulong last);
                using SegmentPreparer preparer = fixture.NewPreparer();
                preparer.Retire(1);
                preparer.Want(last + 1);
                int steps = failing;
                fixture.Disk.Fault = (_, _) => steps-- == 0 ? DiskException.InputOutputError : 0;
                preparer.RunOnce();
                fixture.Disk.Fault = null;
                fixture.Disk.Crash(new Random(seed));
                fixture.Open();
                Assert.Equal("1:last", fixture.All(LogFixture.One)[^1]);
            }
        }
    }

    private static string[] Expected(int batches) =>
        ["1:last", .. Enumerable.Range(0, batches).Select(i => $"2:fresh {i}")];

    /// <summary>A log of a few full segments whose first one is no longer needed.</summary>
    private static LogFixture Filled(out ulong last)
    {
        LogFixture fixture = new LogFixture().Open();
        ulong index = 0;
        while (!fixture.Disk.Files.Contains(LogFixture.SegmentPath(4)))
        {
            fixture.Append(LogFixture.One, ++index, 1, $"stale {index % 10}");
        }

        fixture.Append(LogFixture.One, ++index, 1, "last");
        fixture.Log.Close();
        last = 3;
        fixture.Disk.Delete(LogFixture.SegmentPath(4));
        fixture.Disk.SyncDirectory("/data/log");
        using LogExtentFile extents = LogExtentFile.Open(
            fixture.Disk, LogFixture.Directory, fixture.Options, hasSegments: true);
        extents.Write(extents.Latest with { Segment = last });
        return fixture;
    }

    /// <summary>The same log with some batches in segment 4, which is segment 1's file; killed afterwards.</summary>
    private static (ModelDisk Disk, ulong Segment) Recycled(int batches)
    {
        LogFixture fixture = Filled(out ulong last);
        LogRecovery recovery = new(fixture.Disk.Copy(), new SegmentFiles("/data/log"), fixture.Options, _ => { });
        LogTail tail = recovery.Run();
        ulong index = recovery.Positions.Find(LogFixture.One)!.LastIndex.Value;

        using SegmentPreparer preparer = fixture.NewPreparer();
        preparer.Retire(1);
        IDiskFile file = preparer.Take(last + 1);
        Assert.True(fixture.Disk.Content(file.Path).AsSpan().IndexOf("stale"u8) > 0);
        recovery.Positions.AddSegment(last + 1, file.Length);
        BatchQueue queue = new();
        using GroupCommit commit = new(
            tail with { Segment = last + 1, Position = SegmentHeader.Bytes, File = file },
            recovery.Positions,
            queue,
            preparer,
            fixture.Options);
        LogWriter writer = new(fixture.Log, fixture.Sink);
        for (int i = 0; i < batches; i++)
        {
            LogBuffer buffer = new();
            buffer.WriteEntries(
                LogFixture.One, new LogIndex(++index), 1, LogFixture.Entries(2, $"fresh {i}"));
            queue.Put(new SubmittedBatch(writer, buffer, (ulong)i + 1));
            Assert.True(commit.RunOnce());
        }

        fixture.Disk.Kill();
        return (fixture.Disk, last + 1);
    }
}
