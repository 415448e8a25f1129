using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

namespace Kahuna.Server.Storage.Disk;

/// <summary>The real disk, through the C library of Linux or macOS. Stateless; any thread.</summary>
internal sealed class PosixDisk : IDisk
{
    /// <summary>Owner reads and writes: the log holds the users' values.</summary>
    private const int FileRights = 0b110_000_000;

    private const int DirectoryRights = 0b111_000_000;

    private static readonly PosixNumbers s_numbers = PosixNumbers.Current;

    /// <summary>1 s in steps: a process that is just ending, or a child that was just started from one, is gone by then.</summary>
    public const int LockTries = 51;

    public const int LockPauseMs = 20;

    public void CreateDirectory(string path)
    {
        string whole = Path.TrimEndingDirectorySeparator(Path.GetFullPath(path));
        string? parent = Path.GetDirectoryName(whole);
        if (Directory.Exists(whole))
        {
            // A process that was killed right after it made the directory did not sync its name.
            SyncNameIn(parent);
            return;
        }

        if (parent is not null)
        {
            CreateDirectory(parent);
        }

        if (PosixCalls.MakeDirectory(whole, DirectoryRights) != 0 && Marshal.GetLastPInvokeError() is int error && error != PosixCalls.Exists)
        {
            throw new DiskException("creating directory", whole, error);
        }

        if (parent is not null)
        {
            SyncDirectory(parent);
        }
    }

    public IReadOnlyList<string> List(string directory)
    {
        List<string> names = [];
        foreach (string path in Directory.EnumerateFiles(directory))
        {
            names.Add(Path.GetFileName(path));
        }

        return names;
    }

    public IDiskFile Open(string path, DiskFileMode mode)
    {
        int flags = PosixCalls.ReadWrite | (mode == DiskFileMode.Empty ? s_numbers.Create | s_numbers.Truncate : 0);
        return new PosixFile(path, OpenHandle(path, flags));
    }

    public void Rename(string from, string to)
    {
        if (PosixCalls.Rename(from, to) != 0)
        {
            throw new DiskException("renaming", $"{from} to {to}", Marshal.GetLastPInvokeError());
        }
    }

    public void Delete(string path)
    {
        if (PosixCalls.Unlink(path) != 0 && Marshal.GetLastPInvokeError() is int error && error != PosixCalls.NoEntry)
        {
            throw new DiskException("deleting", path, error);
        }
    }

    public void SyncDirectory(string path)
    {
        using SafeFileHandle handle = OpenHandle(path, PosixCalls.ReadOnly);
        if (PosixCalls.Sync(handle) != 0)
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
        SafeFileHandle handle = OpenHandle(path, PosixCalls.ReadWrite | s_numbers.Create);
        int error = 0;
        for (int i = 0; i < LockTries; i++)
        {
            if (PosixCalls.Lock(handle, PosixCalls.LockExclusive | PosixCalls.LockNonBlocking) == 0)
            {
                return new HeldLock(handle);
            }

            error = Marshal.GetLastPInvokeError();
            if (error != s_numbers.WouldBlock)
            {
                break;
            }

            if (i < LockTries - 1)
            {
                Thread.Sleep(LockPauseMs);
            }
        }

        handle.Dispose();
        return error == s_numbers.WouldBlock ? null : throw new DiskException("locking", path, error);
    }

    public bool CanReadDirectly(string directory)
    {
        string path = Path.Combine(directory, "direct");
        try
        {
            using SafeFileHandle made = OpenHandle(path, PosixCalls.ReadWrite | s_numbers.Create);
            if (OperatingSystem.IsMacOS())
            {
                return MacCalls.PassCache(made) == 0;
            }

            using SafeFileHandle direct = OpenHandle(path, PosixCalls.ReadOnly | PosixNumbers.LinuxDirect);
            return true;
        }
        catch (DiskException)
        {
            return false;
        }
        finally
        {
            Delete(path);
        }
    }

    /// <summary>Makes the name of a directory that was found sure. Who may not read the parent did not make the directory there.</summary>
    private void SyncNameIn(string? parent)
    {
        try
        {
            if (parent is not null)
            {
                SyncDirectory(parent);
            }
        }
        catch (DiskException error) when (error.Number == PosixCalls.NoAccess)
        {
            // Whoever prepared the directory answers for its name.
        }
    }

    private static SafeFileHandle OpenHandle(string path, int flags)
    {
        int descriptor = PosixCalls.Open(path, flags | s_numbers.CloseOnExec, FileRights);
        return descriptor >= 0
            ? new SafeFileHandle(descriptor, ownsHandle: true)
            : throw new DiskException("opening", path, Marshal.GetLastPInvokeError());
    }

    /// <summary>
    /// A lock that is held. The lock belongs to the opened file, which a process that is just being started from this one shares until it runs its own program: closing the file here would leave the lock
    /// in place for as long, so it is released first.
    /// </summary>
    private sealed class HeldLock(SafeFileHandle handle) : IDisposable
    {
        public void Dispose()
        {
            if (!handle.IsClosed)
            {
                _ = PosixCalls.Lock(handle, PosixCalls.Unlock);
                handle.Dispose();
            }
        }
    }
}
