using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Tests.Storage;

/// <summary>
/// Reading entries back while the log is written: from any index, in bounded pieces, never overwritten ones.
/// </summary>
public sealed class LogFetchTests
{
    [Fact]
    public void FromEachIndexOverManySegmentsAndGroups()
    {
        LogFixture fixture = new LogFixture(segmentBytes: 64 * 1024).Open();
        string filler = new('.', 700);
        for (ulong i = 1; i <= 300; i++)
        {
            fixture.Append(LogFixture.One, (2 * i) - 1, i, $"{(2 * i) - 1}{filler}", $"{2 * i}{filler}");
            fixture.Append(LogFixture.Two, i, 1, $"two {i}");
        }

        foreach (ulong first in new ulong[] { 1, 2, 3, 77, 299, 300, 301, 599, 600 })
        {
            string[] texts = fixture.Fetch(LogFixture.One, first);
            Assert.Equal(600 - (int)first + 1, texts.Length);
            Assert.StartsWith($"{(first + 1) / 2}:{first}.", texts[0], StringComparison.Ordinal);
        }

        Assert.Equal(["1:two 299", "1:two 300"], fixture.Fetch(LogFixture.Two, 299));
        Assert.Empty(fixture.Fetch(LogFixture.One, 601));
        Assert.Empty(fixture.Fetch(new GroupId(9), 1));
    }

    [Fact]
    public void AboutAsManyBytesAsAskedForButAtLeastOneEntry()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "aaaa", "bbbb", "cccc", "dddd");
        Assert.Equal(["1:bbbb"], fixture.Fetch(LogFixture.One, 2, 1));
        Assert.Equal(["1:bbbb", "1:cccc"], fixture.Fetch(LogFixture.One, 2, 21));
        Assert.Equal(3, fixture.Fetch(LogFixture.One, 2, 1000).Length);
    }

    [Fact]
    public void OnlyWhatIsOnStableStorage()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "a");
        fixture.Writer.Append(LogFixture.One, new LogIndex(2), 1, LogFixture.Entries(1, "b"));
        fixture.Writer.Submit();
        Assert.Equal(["1:a"], fixture.Fetch(LogFixture.One, 1));
        fixture.Log.CommitOnce();
        Assert.Equal(["1:a", "1:b"], fixture.Fetch(LogFixture.One, 1));
    }

    [Fact]
    public void OverwrittenEntriesAreNotAnswered()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "a", "b", "c");
        fixture.Append(LogFixture.One, 2, 2, "B");
        Assert.Equal(["1:a", "2:B"], fixture.Fetch(LogFixture.One, 1));

        // The overwriting happens while the entries are being read: the answer is empty, and the next one is right.
        fixture.Append(LogFixture.One, 3, 2, "C");
        bool done = false;
        fixture.Reopen();
        fixture.Disk.Fault = (step, _) =>
        {
            if (step == DiskStep.Read && !done)
            {
                done = true;
                fixture.Append(LogFixture.One, 2, 3, "x");
            }

            return 0;
        };
        Assert.Empty(fixture.Fetch(LogFixture.One, 1));
        Assert.True(done);
        Assert.Equal(["1:a", "3:x"], fixture.Fetch(LogFixture.One, 1));
    }

    [Fact]
    public void AReadErrorAnswersNothingAndEndsTheLog()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "a");
        fixture.Disk.Fault = (step, _) => step == DiskStep.Read ? DiskException.InputOutputError : 0;
        Assert.Empty(fixture.Fetch(LogFixture.One, 1));
        fixture.Log.CommitOnce();
        Assert.Contains("EIO", Assert.Single(fixture.Sink.Failures).Message, StringComparison.Ordinal);
    }
}
