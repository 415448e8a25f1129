using Kahuna.Server.Storage;

namespace Kahuna.Tests.Storage;

/// <summary>
/// The extent of the log is recorded outside of it: a log that ends earlier is refused, and nothing is changed.
/// </summary>
public sealed class LogExtentTests
{
    private const string ExtentPath = LogFixture.Directory + "/LOG";

    [Theory]
    [InlineData(1, true)]
    [InlineData(2, true)]
    [InlineData(3, true)]
    [InlineData(1, false)]
    [InlineData(2, false)]
    [InlineData(3, false)]
    public void MissingNewestSegmentsAreRefused(int missing, bool closed)
    {
        LogFixture fixture = Filled(closed);
        ulong[] segments = fixture.SegmentsOnDisk;
        foreach (ulong segment in segments[^missing..])
        {
            fixture.Disk.Delete(LogFixture.SegmentPath(segment));
        }

        AssertRefused(
            fixture,
            LogFixture.SegmentPath(segments[^missing]),
            $"the file is missing, and the log had segments up to {segments[^1]}");
    }

    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public void AMissingLogIsRefused(bool withItsRecord)
    {
        LogFixture fixture = Filled(closed: true);
        foreach (string file in fixture.Disk.Files
            .Where(file => file.EndsWith(".seg", StringComparison.Ordinal) || (withItsRecord && file == ExtentPath))
            .ToArray())
        {
            fixture.Disk.Delete(file);
        }

        AssertRefused(fixture, withItsRecord ? ExtentPath : LogFixture.SegmentPath(4), "is a disk not mounted?");
    }

    [Fact]
    public void ALogWithoutItsRecordIsRefused()
    {
        LogFixture fixture = Filled(closed: true);
        fixture.Disk.Delete(ExtentPath);
        AssertRefused(fixture, ExtentPath, "the file is missing, and there is a log");
    }

    [Fact]
    public void TheLogOfAnotherDirectoryIsRefused()
    {
        LogFixture fixture = Filled(closed: true);
        fixture.Options = fixture.Options with { LogId = 78 };
        AssertRefused(
            fixture, ExtentPath, "it is of log 000000000000004d, and this data directory has log 000000000000004e");
        fixture.Disk.Delete(ExtentPath);
        LogExtentFile.Open(
            fixture.Disk, LogFixture.Directory, fixture.Options with { LogMade = false }, hasSegments: false)
            .Dispose();
        AssertRefused(fixture, LogFixture.SegmentPath(1), "the segment belongs to another log (000000000000004d)");
    }

    [Fact]
    public void AnOlderCopyOfTheNewestSegmentIsRefusedAfterAProperEnd()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "old");
        byte[] copy = fixture.Disk.Content(LogFixture.SegmentPath(1));
        fixture.Append(LogFixture.One, 2, 1, "new");
        fixture.Log.Close();
        fixture.Disk.Change(LogFixture.SegmentPath(1), bytes => copy.CopyTo(bytes, 0));

        // The mark of the start, two batches and the mark of the end; the copy has two of the four.
        AssertRefused(
            fixture, LogFixture.SegmentPath(1), "the log ends here with batch 2, and batch 4 was on stable storage");
    }

    [Fact]
    public void AnOlderCopyOfAnOlderSegmentIsRefused()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "old");
        byte[] copy = fixture.Disk.Content(LogFixture.SegmentPath(1));
        Fill(fixture, from: 2);
        fixture.Disk.Kill();
        fixture.Disk.Change(LogFixture.SegmentPath(1), bytes => copy.CopyTo(bytes, 0));
        Assert.Equal(
            LogFixture.SegmentPath(1),
            Assert.Throws<LogDamagedException>(() => new LogFixture(fixture.Disk).Open()).File);
    }

    [Fact]
    public void WhatWasSyncedASecondAgoIsKnownAfterAKill()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "first");
        int end = fixture.Disk.Content(LogFixture.SegmentPath(1)).AsSpan().LastIndexOf("KahBatch"u8) - 32;
        fixture.Log.CheckSpace();
        fixture.Log.PrepareOnce();
        int syncs = fixture.Disk.Syncs;
        fixture.Log.CheckSpace();
        fixture.Log.PrepareOnce();
        Assert.Equal(syncs, fixture.Disk.Syncs);
        fixture.Append(LogFixture.One, 2, 1, "in the last second");
        fixture.Disk.Kill();
        ModelDisk lastSecondLost = fixture.Disk.Copy();
        int last = lastSecondLost.Content(LogFixture.SegmentPath(1)).AsSpan().LastIndexOf("KahBatch"u8) - 32;
        lastSecondLost.Change(LogFixture.SegmentPath(1), bytes => bytes.AsSpan(last).Clear());
        Assert.Equal(["1:first"], new LogFixture(lastSecondLost).Open().All(LogFixture.One));

        fixture.Disk.Change(LogFixture.SegmentPath(1), bytes => bytes.AsSpan(end).Clear());
        AssertRefused(
            fixture, LogFixture.SegmentPath(1), "the log ends here with batch 1, and batch 2 was on stable storage");
    }

    [Fact]
    public void OneDamagedSlotIsNoneAndBothAreDamage()
    {
        LogFixture fixture = Filled(closed: true);
        ModelDisk both = fixture.Disk.Copy();
        both.Change(ExtentPath, bytes => bytes[30] = bytes[4096 + 30] = 0xEE);
        Assert.Contains(
            "neither of its two records is intact",
            Assert.Throws<LogDamagedException>(() => new LogFixture(both).Open()).Message,
            StringComparison.Ordinal);
        foreach (int slot in new[] { 0, 4096 })
        {
            ModelDisk one = fixture.Disk.Copy();
            one.Change(ExtentPath, bytes => bytes[slot + 30] = 0xEE);
            new LogFixture(one).Open();
        }
    }

    [Fact]
    public void ALossOfPowerAtAnyStepOfAFirstStartLeavesADirectoryThatStarts() =>
        AssertStartsAfterEachStep(static () => new LogFixture(), 25);

    [Fact]
    public void ALossOfPowerAtAnyStepOfAStartThatDropsASegmentLeavesALogThatOpens() => AssertStartsAfterEachStep(
        static () =>
        {
            LogFixture fixture = Filled(closed: false);
            Assert.Equal(4UL, fixture.SegmentsOnDisk[^1]);
            return fixture;
        },
        25);

    private static void AssertStartsAfterEachStep(Func<LogFixture> make, int steps)
    {
        int failed = 0;
        for (int first = 0; first < steps; first++)
        {
            // The process is killed and started again, and killed in that start too, or not; then the power fails.
            for (int second = 0; second <= steps; second++)
            {
                LogFixture fixture = make();
                failed += StartsUntil(fixture, first) ? 0 : 1;
                if (second < steps)
                {
                    fixture.Disk.Kill();
                    StartsUntil(fixture, second);
                }

                fixture.Disk.Crash(new Random((first * steps) + second));
                fixture.Open();
            }
        }

        Assert.True(failed > 10 * steps, $"{failed} starts were cut off");
    }

    /// <summary>
    /// Starts with a process that is killed at this step of the disk, reads not counted; whether the start came to its
    /// end.
    /// </summary>
    private static bool StartsUntil(LogFixture fixture, int steps)
    {
        fixture.Disk.Fault = (step, _) => step != DiskStep.Read && steps-- == 0
            ? throw new OperationCanceledException()
            : 0;
        bool started = Record.Exception(() => fixture.Open()) is not OperationCanceledException;
        fixture.Disk.Fault = null;
        return started;
    }

    private static LogFixture Filled(bool closed)
    {
        LogFixture fixture = new LogFixture().Open();
        Fill(fixture, from: 1);
        Assert.Equal([1UL, 2UL, 3UL, 4UL], fixture.SegmentsOnDisk);
        if (closed)
        {
            fixture.Log.Close();
        }
        else
        {
            fixture.Disk.Kill();
        }

        return fixture;
    }

    /// <summary>Three segments with batches, and a fourth one that is prepared.</summary>
    private static void Fill(LogFixture fixture, ulong from)
    {
        for (ulong i = from; i <= 8; i++)
        {
            fixture.Append(LogFixture.One, i, 1, new string('x', 3500));
        }
    }

    private static void AssertRefused(LogFixture fixture, string file, string words)
    {
        ModelDisk copy = fixture.Disk.Copy();
        LogFixture again = new(copy) { Options = fixture.Options with { LogMade = true } };
        LogDamagedException error = Assert.Throws<LogDamagedException>(() => again.Open());
        Assert.Equal(file, error.File);
        Assert.Contains(words, error.Message, StringComparison.Ordinal);
        Assert.Contains("start this node with --rebuild", error.Message, StringComparison.Ordinal);
        Assert.Contains("A cluster of one node has no others", error.Message, StringComparison.Ordinal);
        Assert.DoesNotContain("backup", error.Message, StringComparison.Ordinal);
        Assert.Equal(
            fixture.Disk.Files.Append(LogFixture.Directory + "/LOCK").Distinct().Order(StringComparer.Ordinal),
            copy.Files);
    }
}
