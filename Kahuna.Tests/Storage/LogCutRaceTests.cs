using System.Collections.Concurrent;
using System.Globalization;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;
using Kahuna.Tests.Partitions;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Storage;

/// <summary>
/// Entries are read while their segment is dropped and its file is used again: they are not held any more, and nothing
/// is damaged.
/// </summary>
public sealed class LogCutRaceTests
{
    private static readonly TimeSpan s_patience = LastNet.Span;

    [Theory]
    [InlineData(DiskStepName.Open, 0, true)]
    [InlineData(DiskStepName.Open, 0, false)]
    [InlineData(DiskStepName.Read, 0, true)]
    [InlineData(DiskStepName.Read, 1, true)]
    [InlineData(DiskStepName.Read, 2, true)]
    [InlineData(DiskStepName.Read, 1, false)]
    public void ASegmentThatGoesDuringTheReading(DiskStepName at, int number, bool reused)
    {
        // Larger than a reader's window, so that it is read in several pieces.
        const int SegmentBytes = 4 << 20;
        LogFixture fixture = new LogFixture(segmentBytes: SegmentBytes, keepBytes: 0).Open();
        ulong last = 0;
        while (fixture.Log.Segments < 2)
        {
            Assert.True(last < 200);
            fixture.Append(LogFixture.One, ++last, 1, $"{last} " + new string('x', 50_000));
        }

        int seen = 0;
        bool done = false;
        fixture.Disk.Fault = (step, path) =>
        {
            if (step.ToString() != at.ToString() || path != LogFixture.SegmentPath(1) || done || seen++ < number)
            {
                return 0;
            }

            done = true;
            fixture.Release(LogFixture.One, last - 1);

            // Segment 4 is made of the file of segment 1, and gets records over most of the old ones.
            for (int more = 70; reused && more > 0; more -= fixture.SegmentsOnDisk.Contains(5UL) ? 1 : 0)
            {
                Assert.True(last < 1000);
                fixture.Append(LogFixture.One, ++last, 1, $"{last} " + new string('y', 50_000));
            }

            return 0;
        };
        string[] found = fixture.Fetch(LogFixture.One, 1);
        Assert.True(done);
        Assert.True(
            !reused || SegmentHeader.Read(fixture.Disk.Content(LogFixture.SegmentPath(4)), out _)!.Value.Recycled);

        // An answer from unchanged bytes is allowed: it has the right entries.
        Assert.All(found.Select((text, i) => (Text: text, Index: i + 1)), one =>
            Assert.StartsWith($"1:{one.Index} ", one.Text, StringComparison.Ordinal));
        Assert.True(!reused || found.Length == 0);
        fixture.Append(LogFixture.One, ++last, 1, $"{last} on");
        Assert.Null(fixture.Log.Failure);
        Assert.Equal([$"1:{last} on"], fixture.Fetch(LogFixture.One, last));
    }

    [Fact]
    public async Task ReadersBesideAWriterThatReleasesAtOnce()
    {
        using TemporaryDirectory directory = new();
        SegmentedLogOptions options =
            new() { SegmentBytes = 64 * 1024, FirstSegmentBytes = 64 * 1024, KeepBytes = 96 * 1024 };
        CheckingSink sink = new();
        const ulong Batches = 1500;
        Random random = new(1);
        GroupId group = new(1);
        await using ThreadedLog log = ThreadedLog.Open(directory.Path, options, RethrownErrors.Shared);
        ILogWriter writer = log.OpenWriter(sink);
        int asked = 0;
        for (ulong i = 1; i <= Batches; i++)
        {
            writer.Append(
                group, new LogIndex(i), 1, LogFixture.Entries(1, $"{i}." + new string((char)('a' + (i % 26)), 3000)));
            ulong batch = writer.Submit();
            Assert.True(sink.WaitFor(batch));
            log.Release(group, new LogIndex(i));

            // Right at the moving edge: the entries read are about to be dropped.
            ulong first = log.StartOf(group).Value + (ulong)random.Next(3);
            if (first > 0)
            {
                asked++;
                writer.Fetch(group, new NodeId(2), new LogIndex(first), random.Next(100_000));
            }
        }

        for (int i = 0; i < asked; i++)
        {
            Assert.True(sink.Answers.TryTake(out int entries, s_patience));
            sink.Empty += entries == 0 ? 1 : 0;
        }

        Assert.Empty(sink.Wrong);
        Assert.Null(log.Failure);
        Assert.InRange(log.Segments, 2, 8);
        Assert.InRange(sink.Empty, 1, asked - 1);
        Assert.True(SpinWait.SpinUntil(
            () => Directory.GetFiles(directory.Path, "*.seg", SearchOption.AllDirectories).Length <= log.Segments + 3,
            s_patience));
    }

    /// <summary>Names a step in a test's arguments.</summary>
    public enum DiskStepName
    {
        Open,
        Read,
    }

    /// <summary>Checks each answer against the index that was asked for.</summary>
    private sealed class CheckingSink : ILogSink
    {
        private readonly BlockingCollection<ulong> _persisted = [];
        private ulong _reached;

        public BlockingCollection<int> Answers { get; } = [];

        public ConcurrentQueue<string> Wrong { get; } = [];

        public int Empty { get; set; }

        public bool WaitFor(ulong batch)
        {
            while (_reached < batch)
            {
                if (!_persisted.TryTake(out _reached, s_patience))
                {
                    return false;
                }
            }

            return true;
        }

        public void Persisted(ulong batch) => _persisted.Add(batch);

        public void Fetched(GroupId group, NodeId follower, LogIndex first, ByteBuffer entries)
        {
            string[] texts = LogFixture.Texts(entries.Written);
            for (int i = 0; i < texts.Length; i++)
            {
                string expected = string.Create(CultureInfo.InvariantCulture, $"1:{first.Value + (ulong)i}.");
                if (!texts[i].StartsWith(expected, StringComparison.Ordinal)
                    || texts[i].Length != expected.Length + 3000)
                {
                    Wrong.Enqueue($"{expected} {texts[i]}");
                }
            }

            entries.Return();
            Answers.Add(texts.Length);
        }

        public void Failed(Exception error) => Wrong.Enqueue(error.Message);
    }
}
