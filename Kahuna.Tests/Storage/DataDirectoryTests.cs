using Kahuna.Server.Storage;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Tests.Storage;

/// <summary>One process per data directory, of a known format.</summary>
public sealed class DataDirectoryTests
{
    [Fact]
    public void ASecondOpeningIsRefusedUntilTheFirstIsClosed()
    {
        LogFixture fixture = new LogFixture().Open();
        DataDirectoryRefusedException error = Assert.Throws<DataDirectoryRefusedException>(
            () => new LogFixture(fixture.Disk).Open());
        Assert.Contains("/data is in use: another process holds its LOCK", error.Message, StringComparison.Ordinal);
        fixture.Log.Close();
        new LogFixture(fixture.Disk).Open();
    }

    [Fact]
    public void AnUnknownFormatIsRefused()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Log.Close();
        fixture.Disk.Change("/data/FORMAT", bytes => bytes[12] = (byte)'3');
        string message = Assert.Throws<DataDirectoryRefusedException>(() => fixture.Open()).Message;
        Assert.Contains(
            "has the format 'kahuna-data 3', and this version understands 'kahuna-data 2' only",
            message,
            StringComparison.Ordinal);
        Assert.Contains("start this node with --rebuild", message, StringComparison.Ordinal);

        // The refusal let go of the lock.
        fixture.Disk.Change("/data/FORMAT", bytes => bytes[12] = (byte)'2');
        fixture.Open();
    }

    [Fact]
    public void ALogWithoutAFormatIsRefused()
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Log.Close();
        fixture.Disk.Delete("/data/FORMAT");
        string message = Assert.Throws<DataDirectoryRefusedException>(() => fixture.Open()).Message;
        Assert.Contains("no FORMAT file", message, StringComparison.Ordinal);
        Assert.Contains("start this node with --rebuild", message, StringComparison.Ordinal);
    }

    [Fact]
    public void AFormatThatWasFoundAfterAKillIsThereAfterThePowerFailed()
    {
        LogFixture fixture = new();
        fixture.Disk.Fault = (step, path) => step == DiskStep.SyncDirectory && path == LogFixture.Directory
            ? throw new OperationCanceledException()
            : 0;
        Assert.Throws<OperationCanceledException>(() => fixture.Open());
        fixture.Disk.Fault = null;
        fixture.Disk.Kill();
        fixture.Open();
        fixture.Disk.Crash();
        fixture.Open();
    }

    [Theory]
    [InlineData(1)]
    [InlineData(3)]
    public void AnUnknownLogFormatIsRefused(byte format)
    {
        LogFixture fixture = new LogFixture().Open();
        fixture.Log.Close();
        fixture.Disk.Change(LogFixture.SegmentPath(1), bytes =>
        {
            bytes[8] = format;
            BitConverter.TryWriteBytes(bytes.AsSpan(44), Crc32C.Of(bytes.AsSpan(0, 44)));
        });
        Assert.Contains(
            $"The log has format {format}, and this version understands format 2 only",
            Assert.Throws<DataDirectoryRefusedException>(() => fixture.Open()).Message,
            StringComparison.Ordinal);
    }

    [Fact]
    public void TheRealLockExcludesAnotherHolder()
    {
        using TemporaryDirectory directory = new();
        PosixDisk disk = new();
        string path = Path.Combine(directory.Path, "a", "b");
        DataDirectory first = DataDirectory.Open(disk, path);
        Assert.Throws<DataDirectoryRefusedException>(() => DataDirectory.Open(disk, path));
        first.Dispose();
        DataDirectory.Open(disk, path).Dispose();
    }
}
