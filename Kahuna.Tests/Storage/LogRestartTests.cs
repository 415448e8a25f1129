using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Storage;

/// <summary>A group's log that begins anew above index 1, as after a snapshot.</summary>
public sealed class LogRestartTests
{
    [Fact]
    public void WhatWasThereIsDroppedAndTheNextEntryFollows()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "a", "b");
        fixture.Append(LogFixture.Two, 1, 1, "other");
        fixture.Writer.Restart(LogFixture.One, new LogIndex(100), new Term(4));
        Assert.Equal(default, fixture.Log.StartOf(LogFixture.One));
        fixture.Commit();
        Assert.Equal(new LogIndex(100), fixture.Log.StartOf(LogFixture.One));
        Assert.Empty(fixture.Fetch(LogFixture.One, 1));
        Assert.Empty(fixture.Fetch(LogFixture.One, 101));

        fixture.Reopen();
        RecoveredGroup found = fixture.Log.Recovered(LogFixture.One);
        Assert.Equal(
            (new LogIndex(100), new Term(4), new LogIndex(100)), (found.Start, found.StartTerm, found.LastIndex));
        Assert.Empty(found.Terms);

        fixture.Append(LogFixture.One, 101, 4, "c");
        fixture.Append(LogFixture.One, 102, 5, "d");
        Assert.Equal(["4:c", "5:d"], fixture.Fetch(LogFixture.One, 101));
        fixture.Reopen();
        found = fixture.Log.Recovered(LogFixture.One);
        Assert.Equal(
            (new LogIndex(100), new Term(4), new LogIndex(102)), (found.Start, found.StartTerm, found.LastIndex));
        Assert.Equal(
            [new TermRun(new LogIndex(101), new Term(4)), new TermRun(new LogIndex(102), new Term(5))], found.Terms);
        Assert.Equal(["4:c", "5:d"], fixture.All(LogFixture.One));
        Assert.Equal(["1:other"], fixture.All(LogFixture.Two));
    }

    [Fact]
    public void InOneBatchWithEntriesBeforeAndAfter()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Writer.Append(LogFixture.One, new LogIndex(1), 1, LogFixture.Entries(1, "a"));
        fixture.Writer.Restart(LogFixture.One, new LogIndex(7), new Term(2));
        fixture.Writer.Append(LogFixture.One, new LogIndex(8), 1, LogFixture.Entries(3, "b"));
        fixture.Writer.Restart(LogFixture.One, new LogIndex(9), new Term(3));
        fixture.Writer.Append(LogFixture.One, new LogIndex(10), 1, LogFixture.Entries(3, "c"));
        fixture.Commit();
        fixture.Reopen();
        Assert.Equal(["3:c"], fixture.All(LogFixture.One));
        Assert.Equal(new LogIndex(9), fixture.Log.Recovered(LogFixture.One).Start);
    }

    [Fact]
    public void EntriesThatDoNotFollowAreOurMistake()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "a", "b");
        fixture.Restart(LogFixture.One, 100, 4);
        Assert.Throws<InvariantException>(() => fixture.Append(LogFixture.One, 100, 4, "x"));
        Assert.Throws<InvariantException>(() => fixture.Append(LogFixture.One, 3, 4, "x"));
        Assert.Throws<InvariantException>(() => fixture.Append(LogFixture.One, 102, 4, "x"));
        fixture.Reopen();
        Assert.Throws<InvariantException>(() => fixture.Append(LogFixture.One, 100, 4, "x"));
        fixture.Append(LogFixture.One, 101, 4, "x");
    }

    [Fact]
    public void EntriesBeforeItNeedNoRelease()
    {
        LogFixture fixture = new LogFixture(keepBytes: 0).Open();
        for (ulong i = 1; i <= 4; i++)
        {
            fixture.Append(LogFixture.One, i, 1, new string('x', 11_000));
        }

        fixture.Restart(LogFixture.One, 50, 6);
        fixture.Append(LogFixture.Two, 1, 1, new string('y', 11_000));
        fixture.Settle();
        Assert.Equal(1, fixture.Log.Segments);

        // The record itself is gone too; its content is in the checkpoint.
        fixture.ReopenWithoutDropped();
        RecoveredGroup found = fixture.Log.Recovered(LogFixture.One);
        Assert.Equal(
            (new LogIndex(50), new Term(6), new LogIndex(50)), (found.Start, found.StartTerm, found.LastIndex));
        fixture.Append(LogFixture.One, 51, 6, "on");
        fixture.Reopen();
        Assert.Equal(["6:on"], fixture.All(LogFixture.One));
    }

    [Fact]
    public void AReadThatItOvertakesIsEmpty()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "a", "b");
        bool done = false;
        fixture.Disk.Fault = (step, _) =>
        {
            if (step == DiskStep.Read && !done)
            {
                done = true;
                fixture.Restart(LogFixture.One, 100, 4);
            }

            return 0;
        };
        Assert.Empty(fixture.Fetch(LogFixture.One, 1));
        Assert.True(done);
    }
}
