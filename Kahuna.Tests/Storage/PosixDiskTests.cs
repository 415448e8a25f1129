using System.Runtime.InteropServices;
using Kahuna.Server.Storage.Disk;

namespace Kahuna.Tests.Storage;

/// <summary>The local disk fulfils the port's contract, and its errors name operation, path and reason.</summary>
public sealed partial class PosixDiskTests : IDisposable
{
    private const uint NobodysId = 65534;

    private readonly TemporaryDirectory _directory = new();
    private readonly PosixDisk _disk = new();

    private string At(string name) => Path.Combine(_directory.Path, name);

    public void Dispose() => _directory.Dispose();

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(64)]
    [InlineData(65)]
    [InlineData(200)]
    public void GatherWritesOfAnyNumberOfParts(int parts)
    {
        using IDiskFile file = _disk.Open(At("f"), DiskFileMode.Empty);
        byte[][] pieces = [.. Enumerable.Range(0, parts).Select(i => Enumerable.Repeat((byte)i, i * 7 % 50).ToArray())];
        file.Write(100, [.. pieces.Select(piece => new ReadOnlyMemory<byte>(piece))]);
        file.SyncData();
        byte[] expected = [.. pieces.SelectMany(piece => piece)];
        Assert.Equal(expected.Length == 0 ? 0 : 100 + expected.Length, file.Length);
        byte[] read = new byte[expected.Length + 10];
        Assert.Equal(expected.Length, file.Read(100, read));
        Assert.Equal(expected, read[..expected.Length]);
        Assert.Equal(0, file.Read(1_000_000, read));
    }

    [Fact]
    public void NamesComeAndGo()
    {
        _disk.Open(At("a"), DiskFileMode.Empty).Dispose();
        _disk.Rename(At("a"), At("b"));
        _disk.SyncDirectory(_directory.Path);
        Assert.Equal(["b"], _disk.List(_directory.Path));
        _disk.Delete(At("b"));
        _disk.Delete(At("b"));
        Assert.Empty(_disk.List(_directory.Path));
    }

    [Fact]
    public void ErrorsNameOperationPathAndReason()
    {
        DiskException error = Assert.Throws<DiskException>(() => _disk.Open(At("none"), DiskFileMode.Existing));
        Assert.Equal($"opening {At("none")} failed: No such file or directory (ENOENT).", error.Message);
        Assert.Throws<DiskException>(() => _disk.Rename(At("none"), At("other")));
        Assert.Throws<DiskException>(() => _disk.SyncDirectory(At("none")));
        Assert.Throws<DiskException>(() => _disk.CreateDirectory("/proc/none"));
    }

    [Fact]
    public void AFullDeviceIsAnError()
    {
        using IDiskFile file = _disk.Open("/dev/full", DiskFileMode.Existing);
        DiskException error = Assert.Throws<DiskException>(() => file.Write(0, [new byte[10]]));
        Assert.Equal((DiskException.NoSpaceLeft, "No space left on device (ENOSPC)"), (error.Number, error.Reason));
        Assert.Throws<DiskException>(() => file.Write(0, [new byte[10], new byte[10]]));
    }

    [Fact]
    public void ASyncThatTheSystemRefusesIsAnError()
    {
        // A device that cannot be synced returns EINVAL, which the class library would hide.
        using IDiskFile file = _disk.Open("/dev/full", DiskFileMode.Existing);
        Assert.Equal(
            "syncing /dev/full failed: Invalid argument (EINVAL).",
            Assert.Throws<DiskException>(file.SyncData).Message);
    }

    [Fact]
    public void ADirectoryIsSyncedAndNotOnlyOpened()
    {
        // A directory of the kernel can be opened and cannot be synced.
        Assert.Equal(
            "syncing directory /proc/self failed: Invalid argument (EINVAL).",
            Assert.Throws<DiskException>(() => _disk.SyncDirectory("/proc/self")).Message);
    }

    [Theory]
    [InlineData("/proc/self")]
    [InlineData("/proc/self/")]
    public void TheNameOfADirectoryThatIsThereIsSyncedToo(string path)
    {
        Assert.Equal(
            "syncing directory /proc failed: Invalid argument (EINVAL).",
            Assert.Throws<DiskException>(() => _disk.CreateDirectory(path)).Message);
    }

    [Fact]
    [System.Runtime.Versioning.UnsupportedOSPlatform("windows")]
    public void ADirectoryWhoseParentIsClosedIsTakenAsItIs()
    {
        string prepared = At("closed/prepared");
        _disk.CreateDirectory(prepared);
        const UnixFileMode Through = UnixFileMode.UserExecute | UnixFileMode.GroupExecute | UnixFileMode.OtherExecute;
        File.SetUnixFileMode(_directory.Path, Through | UnixFileMode.UserRead | UnixFileMode.UserWrite);
        File.SetUnixFileMode(At("closed"), Through);

        // Only this thread becomes another user, who cannot read everything as root can.
        Exception? error = null;
        Thread other = new(() =>
        {
            uint own = SetUser(NobodysId);
            error = Record.Exception(() => Assert.Throws<DiskException>(() => _disk.SyncDirectory(At("closed"))))
                ?? Record.Exception(() => _disk.CreateDirectory(prepared));
            _ = SetUser(own);
        });
        other.Start();
        other.Join();
        File.SetUnixFileMode(At("closed"), Through | UnixFileMode.UserRead | UnixFileMode.UserWrite);
        Assert.Null(error);
    }

    [Fact]
    public void RoomIsKnown()
    {
        DiskSpace space = _disk.Space(_directory.Path);
        Assert.InRange(space.Free, 1, space.Total);
    }

    [Fact]
    public async Task ALockThatIsReleasedSoonIsWaitedFor()
    {
        // A second's wait may be over before a busy machine releases the lock; without a wait it is over every time.
        for (int i = 0; i < 60; i++)
        {
            IDisposable first = _disk.TryLock(At("LOCK"))!;
            using Barrier begun = new(2);
            Task<IDisposable?> second = Task.Run(() =>
            {
                begun.SignalAndWait();
                return _disk.TryLock(At("LOCK"));
            });
            begun.SignalAndWait();
            await Task.Delay(100);
            bool waited = !second.IsCompleted;
            first.Dispose();
            using IDisposable? held = await second;
            if (waited && held is not null)
            {
                return;
            }
        }

        Assert.Fail("A lock that was released soon was not waited for.");
    }

    [Fact]
    public void AReleasedLockIsFreeThoughAnotherDescriptorShares()
    {
        IDisposable first = _disk.TryLock(At("LOCK"))!;
        int descriptor = Directory.EnumerateFiles("/proc/self/fd")
            .Where(link => TargetOf(link) == At("LOCK"))
            .Select(link => int.Parse(Path.GetFileName(link)))
            .Single();

        // The descriptor of a child process between its fork and its own program.
        int shared = Duplicate(descriptor);
        Assert.True(shared >= 0);
        first.Dispose();
        using (IDisposable? second = _disk.TryLock(At("LOCK")))
        {
            Assert.NotNull(second);
        }

        Assert.Equal(0, Close(shared));
    }

    /// <summary>The file of a descriptor; null when a test beside this one has just closed it.</summary>
    private static string? TargetOf(string link)
    {
        try
        {
            return File.ResolveLinkTarget(link, returnFinalTarget: false)?.FullName;
        }
        catch (IOException)
        {
            return null;
        }
    }

    [LibraryImport("libc", EntryPoint = "setfsuid")]
    private static partial uint SetUser(uint id);

    [LibraryImport("libc", EntryPoint = "dup")]
    private static partial int Duplicate(int descriptor);

    [LibraryImport("libc", EntryPoint = "close")]
    private static partial int Close(int descriptor);
}
