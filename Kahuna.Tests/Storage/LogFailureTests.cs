using Kahuna.Server.Storage;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Tests.Storage;

/// <summary>
/// A disk that fails: the log ends, says why, and acknowledges nothing more; lack of room is told before it comes to
/// that.
/// </summary>
public sealed class LogFailureTests
{
    [Theory]
    [InlineData(DiskException.InputOutputError, true, "Syncing log segment {0} at offset {1} failed: Input/output error (EIO); the node stops")]
    [InlineData(DiskException.NoSpaceLeft, true, "Syncing log segment {0} at offset {1} failed: No space left on device (ENOSPC); the node stops")]
    [InlineData(DiskException.InputOutputError, false, "Writing log segment {0} at offset {1} failed: Input/output error (EIO); the node stops")]
    [InlineData(DiskException.NoSpaceLeft, false, "Writing log segment {0} at offset {1} failed: No space left on device (ENOSPC); the node stops")]
    public void AFailedWriteOrSyncEndsTheLog(int error, bool atSync, string text)
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "a");
        int end = (fixture.Disk.Content(LogFixture.SegmentPath(1)).AsSpan().LastIndexOfAnyExcept((byte)0) + 8) / 8 * 8;
        fixture.Disk.Fault = (step, _) => step == (atSync ? DiskStep.SyncData : DiskStep.Write) ? error : 0;
        fixture.Append(LogFixture.One, 2, 1, "b");

        Exception failure = Assert.Single(fixture.Sink.Failures);
        Assert.StartsWith(
            string.Format(null, text, LogFixture.SegmentPath(1), end), failure.Message, StringComparison.Ordinal);

        // The owner reports it, once; the log's own lines are for failures that it survives.
        Assert.Empty(fixture.Lines);

        // The disk is well again, and still nothing is written, reported or tried.
        int syncs = fixture.Disk.Syncs;
        fixture.Disk.Fault = null;
        fixture.Append(LogFixture.One, 2, 1, "c");
        Assert.False(fixture.Log.CommitOnce());
        fixture.Log.MarkIdle();
        fixture.Log.CheckSpace();
        Assert.Equal([1UL], fixture.Sink.Reports);
        Assert.Single(fixture.Sink.Failures);
        Assert.Equal(2, fixture.Writer.Pending);

        RecordingSink late = new();
        fixture.Log.OpenWriter(late);
        Assert.Same(failure, Assert.Single(late.Failures));
        fixture.Log.Close();
        Assert.Equal(syncs, fixture.Disk.Syncs);
    }

    [Fact]
    public void NoRoomForTheNextSegmentRefusesWritesWhileTheNodeLives()
    {
        LogFixture fixture = new();
        fixture.Disk.Capacity = (3 * 16 * 1024) + 2000;
        fixture.Options = fixture.Options with { FreePercentMin = 0 };
        fixture.Open();
        Assert.Null(fixture.Log.RefuseWrites);
        ulong index = 0;
        while (fixture.Log.RefuseWrites is null)
        {
            fixture.Append(LogFixture.One, ++index, 1, new string('x', 3000));
            Assert.Empty(fixture.Sink.Failures);
        }

        Assert.Contains(
            "next log segment could not be prepared (No space left on device (ENOSPC))",
            fixture.Log.RefuseWrites,
            StringComparison.Ordinal);

        // There is still space for pending writes, such as a vote.
        fixture.Save(LogFixture.One, 7, 1, 0);
        Assert.Empty(fixture.Sink.Failures);

        // With room again, writes go on.
        fixture.Disk.Capacity *= 2;
        fixture.Log.CheckSpace();
        fixture.Log.PrepareOnce();
        Assert.Null(fixture.Log.RefuseWrites);
        fixture.Reopen();
        Assert.Equal(index, fixture.Log.Recovered(LogFixture.One).LastIndex.Value);
    }

    [Fact]
    public void WritingOnWithoutRoomEndsTheLogAndLosesNothing()
    {
        LogFixture fixture = new();
        fixture.Disk.Capacity = (3 * 16 * 1024) + (8 * 1024) + 2000;
        fixture.Open();
        ulong index = 0;
        while (fixture.Sink.Failures.Count == 0)
        {
            fixture.Append(LogFixture.One, ++index, 1, new string('x', 3000));
        }

        Assert.Contains(
            "Preparing log segment 4 failed: No space left on device (ENOSPC)",
            fixture.Sink.Failures[0].Message,
            StringComparison.Ordinal);
        fixture.Disk.Crash();
        fixture.Open();
        Assert.Equal(index - 1, fixture.Log.Recovered(LogFixture.One).LastIndex.Value);
    }

    [Fact]
    public void PastTheLimitWritesAreRefused()
    {
        LogFixture fixture = new();
        fixture.Options = fixture.Options with { LogLimitBytes = 20_000 };
        fixture.Open();
        fixture.Append(LogFixture.One, 1, 1, new string('x', 8000));
        Assert.Null(fixture.Log.RefuseWrites);
        fixture.Append(LogFixture.One, 2, 1, new string('x', 8000));
        Assert.Contains("limit", fixture.Log.RefuseWrites, StringComparison.Ordinal);
        Assert.Contains("--log-limit", Assert.Single(fixture.Lines), StringComparison.Ordinal);
        fixture.Reopen();
        Assert.NotNull(fixture.Log.RefuseWrites);
        Assert.Equal(2, fixture.All(LogFixture.One).Length);
    }

    [Fact]
    public void ANearlyFullDiskRefusesWritesUntilThereIsRoom()
    {
        LogFixture fixture = new LogFixture().Open();
        Assert.Null(fixture.Log.RefuseWrites);
        fixture.Disk.Capacity = fixture.Disk.Used * 100 / 96;
        fixture.Log.CheckSpace();
        Assert.Contains("less than 5 %", fixture.Log.RefuseWrites, StringComparison.Ordinal);
        fixture.Disk.Capacity = fixture.Disk.Used * 2;
        fixture.Log.CheckSpace();
        Assert.Null(fixture.Log.RefuseWrites);
    }

    [Fact]
    public void ALogThatCannotBeReadBackEnds()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "payload");
        fixture.Disk.Change(LogFixture.SegmentPath(1), bytes => bytes[bytes.AsSpan().IndexOf("payload"u8)] ^= 1);
        Assert.Empty(fixture.Fetch(LogFixture.One, 1));
        Assert.False(fixture.Log.CommitOnce());
        Assert.IsType<LogDamagedException>(Assert.Single(fixture.Sink.Failures));
    }

    [Theory]
    [InlineData(nameof(DiskStep.SyncData))]
    [InlineData(nameof(DiskStep.SyncDirectory))]
    [InlineData(nameof(DiskStep.Rename))]
    [InlineData(nameof(DiskStep.Write))]
    public void ADiskThatFailsAtTheStartIsAnError(string step)
    {
        LogFixture fixture = new();
        fixture.Disk.Fault = (at, path) => at.ToString() == step && !path.Contains("FORMAT", StringComparison.Ordinal)
            ? DiskException.InputOutputError
            : 0;
        Assert.Contains("EIO", Assert.ThrowsAny<Exception>(() => fixture.Open()).Message, StringComparison.Ordinal);
        fixture.Disk.Fault = null;
        fixture.Open();
        fixture.Append(LogFixture.One, 1, 1, "a");
        Assert.Equal([1UL], fixture.Sink.Reports);
    }
}
