using System.Text;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Storage;

/// <summary>A log on a model disk, run by hand on the test's thread, and small words for its entries.</summary>
internal sealed class LogFixture
{
    public const string Directory = "/data";

    public static readonly GroupId One = new(1);
    public static readonly GroupId Two = new(2);

    public LogFixture(ModelDisk? disk = null, long segmentBytes = 16 * 1024, long keepBytes = long.MaxValue)
    {
        Disk = disk ?? new ModelDisk();
        Options = new SegmentedLogOptions
        {
            SegmentBytes = segmentBytes,
            FirstSegmentBytes = segmentBytes,
            KeepBytes = keepBytes,
            LogId = 77,
        };
    }

    public ModelDisk Disk { get; }

    public SegmentedLogOptions Options { get; set; }

    public List<string> Lines { get; } = [];

    public RecordingSink Sink { get; private set; } = new();

    public SegmentedLog Log { get; private set; } = null!;

    public ILogWriter Writer { get; private set; } = null!;

    /// <summary>Numbers of the segments whose files have their names.</summary>
    public ulong[] SegmentsOnDisk =>
        [
            .. Disk.Files.Select(path => SegmentFiles.TryParse(Path.GetFileName(path), out ulong segment) ? segment : 0)
                .Where(segment => segment > 0),
        ];

    public static string SegmentPath(ulong segment) => new SegmentFiles(Directory + "/log").Path(segment);

    /// <summary>Entries of one term with these texts as payloads.</summary>
    public static byte[] Entries(ulong term, params string[] texts)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        foreach (string text in texts)
        {
            EntryCodec.Write(buffer, new Term(term), EntryKind.Commands, Encoding.UTF8.GetBytes(text));
        }

        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    /// <summary>"term:text" of each entry.</summary>
    public static string[] Texts(ReadOnlySpan<byte> entries)
    {
        List<string> texts = [];
        while (EntryCodec.TryRead(ref entries, out Term term, out _, out ReadOnlySpan<byte> payload))
        {
            texts.Add($"{term}:{Encoding.UTF8.GetString(payload)}");
        }

        Assert.True(entries.IsEmpty);
        return [.. texts];
    }

    public LogFixture Open()
    {
        Log = SegmentedLog.Open(Directory, Options, Disk, line => Lines.Add(line.ToString()));
        Sink = new RecordingSink();
        Writer = Log.OpenWriter(Sink);
        return this;
    }

    /// <summary>Closes properly and opens again.</summary>
    public LogFixture Reopen()
    {
        Log.Close();
        return Open();
    }

    /// <summary>
    /// Closes properly and opens again, without the dropped segments whose files wait to be used again.
    /// </summary>
    public LogFixture ReopenWithoutDropped()
    {
        ulong first = SegmentsOnDisk[^1] - (ulong)Log.Segments;
        Log.Close();
        foreach (ulong segment in SegmentsOnDisk.Where(segment => segment < first))
        {
            Disk.Delete(SegmentPath(segment));
        }

        return Open();
    }

    /// <summary>Makes segments for a log that is not open.</summary>
    public SegmentPreparer NewPreparer(SegmentedLogOptions? options = null) =>
        new(
            Disk,
            new SegmentFiles(Directory + "/log"),
            options ?? Options,
            LogExtentFile.Open(Disk, Directory, Options, hasSegments: true));

    /// <summary>Appends, submits and commits.</summary>
    public void Append(GroupId group, ulong first, ulong term, params string[] texts)
    {
        Writer.Append(group, new LogIndex(first), texts.Length, Entries(term, texts));
        Commit();
    }

    public void Save(GroupId group, ulong term, ushort vote, ulong commit)
    {
        Writer.Save(group, new HardState(new Term(term), new NodeId(vote), new LogIndex(commit)));
        Commit();
    }

    public void Restart(GroupId group, ulong index, ulong term)
    {
        Writer.Restart(group, new LogIndex(index), new Term(term));
        Commit();
    }

    public void Commit()
    {
        Assert.NotEqual(0UL, Writer.Submit());
        Log.CommitOnce();
        Log.PrepareOnce();
    }

    /// <summary>Releases entries, and runs the steps of the log's threads.</summary>
    public void Release(GroupId group, ulong index)
    {
        Log.Release(group, new LogIndex(index));
        Settle();
    }

    /// <summary>Runs the log's steps until there is nothing to do.</summary>
    public void Settle()
    {
        while (Log.CommitOnce())
        {
        }

        Log.PrepareOnce();
    }

    /// <summary>Everything the group has, through a replay.</summary>
    public string[] All(GroupId group)
    {
        RecoveredGroup found = Log.Recovered(group);
        return Replay(group, found.Start.Value + 1, found.LastIndex.Value);
    }

    public string[] Replay(GroupId group, ulong first, ulong last)
    {
        List<string> texts = [];
        ulong next = first;
        Log.Replay(group, new LogIndex(first), new LogIndex(last), (index, chunk) =>
        {
            Assert.Equal(next, index.Value);
            string[] some = Texts(chunk.Span);
            Assert.NotEmpty(some);
            texts.AddRange(some);
            next += (ulong)some.Length;
        });
        return [.. texts];
    }

    public string[] Fetch(GroupId group, ulong first, int bytesMax = int.MaxValue)
    {
        Writer.Fetch(group, new NodeId(2), new LogIndex(first), bytesMax);
        Assert.True(Log.FetchOnce());
        return Texts(Sink.Answers[^1]);
    }
}
