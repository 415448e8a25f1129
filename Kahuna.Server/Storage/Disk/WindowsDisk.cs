using System.Runtime.InteropServices;
using System.Runtime.Versioning;
using Microsoft.Win32.SafeHandles;

namespace Kahuna.Server.Storage.Disk;

/// <summary>The local disk on Windows, for developers' nodes. Stateless; any thread.</summary>
[SupportedOSPlatform("windows")]
internal sealed class WindowsDisk : IDisk
{
    public void CreateDirectory(string path)
    {
        string whole = Path.TrimEndingDirectorySeparator(Path.GetFullPath(path));
        bool isNew = !Directory.Exists(whole);
        string? parent = Path.GetDirectoryName(whole);
        if (isNew && parent is not null)
        {
            CreateDirectory(parent);
        }

        Tried("creating directory", whole, () => Directory.CreateDirectory(whole));
        if (isNew && parent is not null)
        {
            SyncDirectory(parent);
        }
    }

    public IReadOnlyList<string> List(string directory) =>
        [.. Directory.EnumerateFiles(directory).Select(static path => Path.GetFileName(path))];

    public IDiskFile Open(string path, DiskFileMode mode) =>
        new WindowsFile(path, OpenHandle(path, mode == DiskFileMode.Empty ? FileMode.Create : FileMode.Open));

    public void Rename(string from, string to)
    {
        if (!WindowsCalls.Rename(from, to))
        {
            throw new DiskException("renaming", $"{from} to {to}", Marshal.GetLastPInvokeError());
        }
    }

    public void Delete(string path)
    {
        Tried("deleting", path, () => File.Delete(path));
    }

    public void SyncDirectory(string path)
    {
        using SafeFileHandle handle = WindowsCalls.OpenDirectory(path);
        if (handle.IsInvalid || !WindowsCalls.Sync(handle))
        {
            throw new DiskException("syncing directory", path, Marshal.GetLastPInvokeError());
        }
    }

    public DiskSpace Space(string directory)
    {
        DriveInfo drive = new(directory);
        return new DiskSpace(drive.AvailableFreeSpace, drive.TotalSize);
    }

    public IDisposable? TryLock(string path)
    {
        SafeFileHandle handle = OpenHandle(path, FileMode.OpenOrCreate);
        for (int i = 0; i < PosixDisk.LockTries; i++)
        {
            if (WindowsCalls.TryLock(handle))
            {
                return handle;
            }

            int error = Marshal.GetLastPInvokeError();
            if (error != WindowsCalls.LockViolation)
            {
                handle.Dispose();
                throw new DiskException("locking", path, error);
            }

            Thread.Sleep(PosixDisk.LockPauseMs);
        }

        handle.Dispose();
        return null;
    }

    private static SafeFileHandle OpenHandle(string path, FileMode mode)
    {
        SafeFileHandle? opened = null;
        Tried("opening", path, () =>
            opened = File.OpenHandle(path, mode, FileAccess.ReadWrite, FileShare.ReadWrite | FileShare.Delete));
        return opened!;
    }

    private static void Tried(string operation, string path, Action action)
    {
        try
        {
            action();
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            throw DiskException.Of(operation, path, error);
        }
    }
}
