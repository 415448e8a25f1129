using Kahuna.Server.Storage;

namespace Kahuna.Tests.Storage;

/// <summary>
/// Damage in data that was on stable storage prevents the start, with file and offset in the error; nothing is changed.
/// </summary>
public sealed class DamageTests
{
    [Fact]
    public void AFlippedBitInAnyByteBelowTheLastBatchIsRefused()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "a", "bcd");
        fixture.Save(LogFixture.One, 1, 1, 1);
        fixture.Append(LogFixture.One, 3, 1, "e");
        fixture.Log.Close();
        string path = LogFixture.SegmentPath(1);
        int end = fixture.Disk.Content(path).AsSpan().LastIndexOf("KahBatch"u8) - 32;
        for (int at = SegmentHeader.Bytes; at < end; at++)
        {
            ModelDisk copy = fixture.Disk.Copy();
            byte[] before = copy.Content(path);
            copy.Change(path, bytes => bytes[at] ^= 4);
            LogFixture damaged = new(copy);
            LogDamagedException? error = Record.Exception(() => { damaged.Open(); }) as LogDamagedException;
            if (error is null)
            {
                // Padding between records is covered by no checksum and means nothing.
                Assert.Equal(["1:a", "1:bcd", "1:e"], damaged.All(LogFixture.One));
                Assert.Equal(0, before[at]);
                continue;
            }

            Assert.Equal(path, error.File);
            Assert.InRange(error.Offset, SegmentHeader.Bytes, at);
            Assert.Contains($"file {path}, offset {error.Offset}", error.Message, StringComparison.Ordinal);
        }
    }

    [Fact]
    public void TheMarkCoversTheLastBatchToo()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "payload");
        fixture.Log.MarkIdle();
        fixture.Disk.Kill();
        string path = LogFixture.SegmentPath(1);
        fixture.Disk.Change(path, bytes => bytes[bytes.AsSpan().IndexOf("payload"u8)] ^= 1);
        Assert.Throws<LogDamagedException>(() => new LogFixture(fixture.Disk).Open());
    }

    [Fact]
    public void DamageIsRefusedWithAllThatLiesInALaterSegment()
    {
        foreach (string damage in new[] { "payload 7", "payload 0" })
        {
            LogFixture fixture = new LogFixture().Open();
            for (ulong i = 0; i < 20; i++)
            {
                fixture.Append(LogFixture.One, i + 1, 1, $"payload {i} " + new string('.', 3000));
            }

            fixture.Disk.Kill();
            string path = fixture.Disk.Files.First(
                file => fixture.Disk.Content(file).AsSpan().IndexOf(System.Text.Encoding.UTF8.GetBytes(damage)) >= 0);
            fixture.Disk.Change(
                path, bytes => bytes[bytes.AsSpan().IndexOf(System.Text.Encoding.UTF8.GetBytes(damage))] ^= 1);
            Assert.Equal(path, Assert.Throws<LogDamagedException>(() => new LogFixture(fixture.Disk).Open()).File);
        }
    }

    [Fact]
    public void TheEndOfASegmentBeforeTheLastMustBeThere()
    {
        LogFixture fixture = ThreeSegments();
        string path = LogFixture.SegmentPath(1);
        int last = fixture.Disk.Content(path).AsSpan().LastIndexOf("KahBatch"u8) - 32;
        fixture.Disk.Change(path, bytes => bytes.AsSpan(last).Clear());
        LogDamagedException error = Assert.Throws<LogDamagedException>(() => new LogFixture(fixture.Disk).Open());
        Assert.Equal((path, (long)last), (error.File, error.Offset));
    }

    [Fact]
    public void AMissingSegmentIsRefused()
    {
        LogFixture fixture = ThreeSegments();
        fixture.Disk.Delete(LogFixture.SegmentPath(2));
        LogDamagedException error = Assert.Throws<LogDamagedException>(() => new LogFixture(fixture.Disk).Open());
        Assert.Equal(LogFixture.SegmentPath(2), error.File);
    }

    [Fact]
    public void AShortenedSegmentIsRefused()
    {
        LogFixture fixture = ThreeSegments();
        fixture.Disk.Cut(LogFixture.SegmentPath(1), 9000);
        LogDamagedException error = Assert.Throws<LogDamagedException>(() => new LogFixture(fixture.Disk).Open());
        Assert.Equal((LogFixture.SegmentPath(1), 9000L), (error.File, error.Offset));
    }

    [Theory]
    [InlineData(0, "is no log segment")]
    [InlineData(9, "checksum of its header")]
    public void ADamagedSegmentHeaderIsRefused(int at, string text)
    {
        LogFixture fixture = ThreeSegments();
        fixture.Disk.Change(LogFixture.SegmentPath(2), bytes => bytes[at] ^= 1);
        Assert.Contains(
            text,
            Assert.Throws<LogDamagedException>(() => new LogFixture(fixture.Disk).Open()).Message,
            StringComparison.Ordinal);
    }

    [Fact]
    public void ASegmentUnderAWrongNameOrOfAnotherLogIsRefused()
    {
        LogFixture fixture = ThreeSegments();
        LogFixture other = new();
        other.Options = other.Options with { LogId = 78 };
        other.Open();
        for (ulong i = 1; i <= 10; i++)
        {
            other.Append(LogFixture.One, i, 1, new string('o', 5000));
        }

        byte[] foreign = other.Disk.Content(LogFixture.SegmentPath(2));
        fixture.Disk.Change(LogFixture.SegmentPath(2), bytes => foreign.CopyTo(bytes, 0));
        Assert.Contains(
            "another log",
            Assert.Throws<LogDamagedException>(() => new LogFixture(fixture.Disk).Open()).Message,
            StringComparison.Ordinal);

        LogFixture renamed = ThreeSegments();
        renamed.Disk.Rename(LogFixture.SegmentPath(3), LogFixture.SegmentPath(2));
        Assert.Contains(
            "says segment 3",
            Assert.Throws<LogDamagedException>(() => new LogFixture(renamed.Disk).Open()).Message,
            StringComparison.Ordinal);
    }

    [Fact]
    public void AClientsValueThatLooksLikeABatchProvesNothing()
    {
        // A value that holds the bytes of a batch's front is written by the batch that gets torn; it must not turn the
        // torn tail into damage.
        LogFixture fixture = new LogFixture().Open();
        fixture.Append(LogFixture.One, 1, 1, "a");
        byte[] content = fixture.Disk.Content(LogFixture.SegmentPath(1));
        int batch = content.AsSpan().LastIndexOf("KahBatch"u8) - 32;
        string front = System.Text.Encoding.Latin1.GetString(content, batch, 48).Replace('\u0080', '.');
        fixture.Append(LogFixture.One, 2, 1, new string('.', 100) + front + "KahBatch" + front, "second");
        fixture.Disk.Kill();
        string path = LogFixture.SegmentPath(1);
        fixture.Disk.Change(path, bytes => bytes[bytes.AsSpan().IndexOf("second"u8)] ^= 1);
        LogFixture again = new LogFixture(fixture.Disk).Open();
        Assert.Equal(["1:a"], again.All(LogFixture.One));
        Assert.Single(again.Lines);
    }

    private static LogFixture ThreeSegments()
    {
        LogFixture fixture = new LogFixture().Open();
        for (ulong i = 1; i <= 8; i++)
        {
            fixture.Append(LogFixture.One, i, 1, new string('x', 3500));
        }

        Assert.True(fixture.Log.Recovered(LogFixture.One).LastIndex.Value == 0);
        fixture.Disk.Kill();
        return fixture;
    }
}
