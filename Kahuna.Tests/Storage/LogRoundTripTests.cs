using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Storage;

/// <summary>
/// Persisted data is found again after opening: entries, terms, hard states, over truncations and segments.
/// </summary>
public sealed class LogRoundTripTests
{
    [Fact]
    public void AnEmptyLogHasNothing()
    {
        LogFixture fixture = new LogFixture().Open();
        Assert.Equal(default, fixture.Log.Recovered(LogFixture.One).LastIndex);
        Assert.Empty(fixture.Log.Recovered(LogFixture.One).Terms);
        fixture.Reopen();
        Assert.Equal(default, fixture.Log.Recovered(LogFixture.One).HardState);
        Assert.Empty(fixture.Lines);
    }

    [Fact]
    public void EntriesTermsAndHardStatesComeBack()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "a", "b");
        fixture.Append(LogFixture.Two, 1, 4, "x");
        fixture.Append(LogFixture.One, 3, 3, "c");
        fixture.Save(LogFixture.One, 3, 2, 1);
        fixture.Save(LogFixture.One, 4, 1, 2);
        fixture.Reopen();

        RecoveredGroup one = fixture.Log.Recovered(LogFixture.One);
        Assert.Equal(new HardState(new Term(4), new NodeId(1), new LogIndex(2)), one.HardState);
        Assert.Equal([new TermRun(new LogIndex(1), new Term(1)), new TermRun(new LogIndex(3), new Term(3))], one.Terms);
        Assert.Equal(new LogIndex(3), one.LastIndex);
        Assert.Equal(["1:a", "1:b", "3:c"], fixture.All(LogFixture.One));
        Assert.Equal(["4:x"], fixture.All(LogFixture.Two));
        Assert.Equal(["1:b"], fixture.Replay(LogFixture.One, 2, 2));
        Assert.Empty(fixture.Lines);
    }

    [Fact]
    public void ALaterRecordDropsWhatTheGroupHadAtAndAboveIt()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "a", "b", "c", "d");
        fixture.Append(LogFixture.One, 5, 1, "e");
        fixture.Append(LogFixture.One, 3, 2, "C");
        fixture.Append(LogFixture.One, 4, 2, "D", "E", "F");
        fixture.Append(LogFixture.One, 6, 3, "f");
        fixture.Reopen();

        Assert.Equal(["1:a", "1:b", "2:C", "2:D", "2:E", "3:f"], fixture.All(LogFixture.One));
        Assert.Equal(new LogIndex(6), fixture.Log.Recovered(LogFixture.One).LastIndex);
        Assert.Equal(3, fixture.Log.Recovered(LogFixture.One).Terms.Count);
        Assert.Equal(["2:C"], fixture.Replay(LogFixture.One, 3, 3));
    }

    [Fact]
    public void AnAppendWithoutEntriesOnlyDropsTheTail()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "a", "b", "c");
        fixture.Append(LogFixture.One, 2, 1);
        fixture.Reopen();
        Assert.Equal(["1:a"], fixture.All(LogFixture.One));
        fixture.Append(LogFixture.One, 2, 5, "B");
        fixture.Append(LogFixture.One, 1, 6);
        fixture.Reopen();
        Assert.Equal(new LogIndex(0), fixture.Log.Recovered(LogFixture.One).LastIndex);
        fixture.Append(LogFixture.One, 1, 7, "A");
        fixture.Reopen();
        Assert.Equal(["7:A"], fixture.All(LogFixture.One));
    }

    [Fact]
    public void SegmentsFollowEachOtherAndHardStatesAreInEach()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Save(LogFixture.Two, 9, 3, 0);
        for (ulong i = 1; i <= 200; i++)
        {
            fixture.Append(LogFixture.One, i, 1, new string((char)('a' + (i % 26)), 900));
        }

        Assert.True(fixture.Disk.Files.Count(path => path.EndsWith(".seg", StringComparison.Ordinal)) > 10);
        fixture.Reopen();
        Assert.Equal(200, fixture.All(LogFixture.One).Length);
        Assert.Equal(200 - 99, fixture.Replay(LogFixture.One, 100, 200).Length);

        // Only the last segments are there, as after a cut: the hard state of a silent group is found in them.
        string last = fixture.Disk.Files.Where(path => path.EndsWith(".seg", StringComparison.Ordinal)).ToArray()[^2];
        fixture.Log.Close();
        foreach (string path in fixture.Disk.Files
            .Where(path => path.EndsWith(".seg", StringComparison.Ordinal) && string.CompareOrdinal(path, last) < 0)
            .ToArray())
        {
            fixture.Disk.Delete(path);
        }

        fixture.Open();
        Assert.Equal(
            new HardState(new Term(9), new NodeId(3), default), fixture.Log.Recovered(LogFixture.Two).HardState);
        Assert.Equal(new LogIndex(200), fixture.Log.Recovered(LogFixture.One).LastIndex);
        Assert.True(fixture.All(LogFixture.One).Length < 40);
    }

    [Fact]
    public void ABatchLargerThanASegmentGetsItsOwn()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "before");
        fixture.Append(LogFixture.One, 2, 1, new string('x', 100_000));
        fixture.Append(LogFixture.One, 3, 1, "after");
        fixture.Reopen();
        string[] all = fixture.All(LogFixture.One);
        Assert.Equal(["1:before", "1:after"], [all[0], all[2]]);
        Assert.Equal(100_002, all[1].Length);
        Assert.True(fixture.Disk.Content(LogFixture.SegmentPath(2)).Length > 100_000);
        Assert.Equal(16 * 1024, fixture.Disk.Content(LogFixture.SegmentPath(3)).Length);
    }

    [Fact]
    public void ManyOpeningsLeaveTheContentAsItIs()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "a");
        for (int i = 0; i < 500; i++)
        {
            fixture.Reopen();
        }

        Assert.Equal(["1:a"], fixture.All(LogFixture.One));
        Assert.Empty(fixture.Lines);
    }
}
