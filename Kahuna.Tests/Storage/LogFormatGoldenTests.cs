using System.Globalization;
using System.Runtime.CompilerServices;
using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;

namespace Kahuna.Tests.Storage;

/// <summary>
/// The log's bytes, against a file of the repository: a change of the format is a decision, and shows in the review.
/// </summary>
public sealed class LogFormatGoldenTests
{
    [Fact]
    public void ASegmentsBytes()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "first", "second one");
        fixture.Save(LogFixture.Two, 0x0102, 3, 0x0405);
        fixture.Writer.Append(LogFixture.One, new LogIndex(2), 1, LogFixture.Entries(2, "overwritten"));
        fixture.Writer.Save(LogFixture.One, new HardState(new Term(2), new NodeId(1), new LogIndex(1)));
        fixture.Commit();
        fixture.Append(LogFixture.One, 3, 2, new string('x', 11_800));
        fixture.Append(LogFixture.One, 4, 2, "in the second segment");
        fixture.Log.Close();

        CheckSegments("segments.txt", fixture, 1, 2);
    }

    [Fact]
    public void ALogThatBeginsAnew()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "dropped");
        fixture.Writer.Restart(LogFixture.One, new LogIndex(0x0708), new Term(0x090a));
        fixture.Writer.Append(LogFixture.One, new LogIndex(0x0709), 1, LogFixture.Entries(0x090b, "first one after"));
        fixture.Commit();
        fixture.Log.Close();
        CheckSegments("restart.txt", fixture, 1);
    }

    [Fact]
    public void ALogWhoseFirstSegmentsAreGone()
    {
        LogFixture fixture = new LogFixture(keepBytes: 0).Open();
        fixture.Append(LogFixture.Two, 1, 3, "idle");
        fixture.Save(LogFixture.Two, 3, 1, 1);
        for (ulong i = 1; i <= 3; i++)
        {
            fixture.Append(LogFixture.One, i, i, new string((char)('a' + i), 11_000));
        }

        // The first one becomes the next one, and keeps what it held behind the new records.
        fixture.Log.Release(LogFixture.Two, new LogIndex(1));
        fixture.Release(LogFixture.One, 1);
        fixture.Append(LogFixture.One, 4, 4, new string('x', 11_000));
        fixture.Append(LogFixture.One, 5, 4, "in the file of segment 1");
        fixture.Log.Close();
        Assert.Equal([2UL, 3UL, 4UL, 5UL], fixture.SegmentsOnDisk);
        CheckSegments("cut.txt", fixture, 2, 3, 4, 5);
    }

    [Fact]
    public void TheFormatFile()
    {
        LogFixture fixture = new LogFixture().Open();
        Check("FORMAT.txt", Encoding.UTF8.GetString(fixture.Disk.Content("/data/FORMAT")));
    }

    private static void CheckSegments(string name, LogFixture fixture, params ulong[] segments)
    {
        StringBuilder text = new();
        foreach (ulong segment in segments)
        {
            Dump(text, segment, fixture.Disk.Content(LogFixture.SegmentPath(segment)));
        }

        Check(name, text.ToString());
    }

    /// <summary>The header, then one record a paragraph, 16 bytes a line; runs of the same line are left out.</summary>
    private static void Dump(StringBuilder text, ulong segment, byte[] content)
    {
        text.Append(CultureInfo.InvariantCulture, $"segment {segment}, {content.Length} bytes\n");
        DumpBytes(text, content.AsSpan(0, 48));
        Assert.Equal(-1, content.AsSpan(48, SegmentHeader.Bytes - 48).IndexOfAnyExcept((byte)0));
        SegmentHeader made = SegmentHeader.Read(content, out _)!.Value;
        int offset = SegmentHeader.Bytes;
        ReadOnlySpan<byte> rest = content.AsSpan(offset);
        while (LogRecord.TryTake(ref rest, made.Seal, out RecordHeader header, out _))
        {
            text.Append(CultureInfo.InvariantCulture, $"\nat {offset}: {header.Kind}\n");
            DumpBytes(text, content.AsSpan(offset, (int)header.RecordBytes));
            offset += (int)header.RecordBytes;
        }

        if (made.Recycled)
        {
            text.Append(CultureInfo.InvariantCulture, $"\nat {offset}: what the file held before\n");
        }
        else
        {
            Assert.Equal(-1, content.AsSpan(offset).IndexOfAnyExcept((byte)0));
        }

        text.Append('\n');
    }

    private static void DumpBytes(StringBuilder text, ReadOnlySpan<byte> bytes)
    {
        string before = "";
        for (; !bytes.IsEmpty; bytes = bytes[Math.Min(16, bytes.Length)..])
        {
            string line = Convert.ToHexStringLower(bytes[..Math.Min(16, bytes.Length)]);
            if (line != before)
            {
                text.Append(line).Append('\n');
            }

            before = line;
        }
    }

    private static void Check(string name, string text, [CallerFilePath] string source = "")
    {
        string path = Path.Combine(Path.GetDirectoryName(source)!, "..", "Golden", "Storage", name);
        if (Environment.GetEnvironmentVariable("KAHUNA_UPDATE_GOLDEN") == "1")
        {
            Directory.CreateDirectory(Path.GetDirectoryName(path)!);
            File.WriteAllText(path, text);
        }

        Assert.Equal(File.ReadAllText(path), text);
    }
}
