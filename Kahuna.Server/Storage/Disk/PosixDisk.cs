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

    /// <summary>
    /// One second in steps: enough for a process that is just ending, or its just started child, to release the lock.
    /// </summary>
    public const int LockTries = 51;

    public const int LockPauseMs = 20;

    public void CreateDirectory(string path)
    {
        string whole = Path.TrimEndingDirectorySeparator(Path.GetFullPath(path));
        string? parent = Path.GetDirectoryName(whole);
        if (Directory.Exists(whole))
        {
            // A process killed right after it created the directory did not sync its name.
            SyncNameIn(parent);
            return;
        }

        if (parent is not null)
        {
            CreateDirectory(parent);
        }

        if (PosixCalls.MakeDirectory(whole, DirectoryRights) != 0
            && Marshal.GetLastPInvokeError() is int error
            && error != PosixCalls.Exists)
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
        PosixFile file = new(path, OpenHandle(path, flags));
        return mode == DiskFileMode.Appended && OpenDirectly(file) is { } direct
            ? new PosixAppendFile(file, direct) : file;
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

    /// <summary>
    /// Syncs the name of an existing directory. A process that may not read the parent did not create the directory.
    /// </summary>
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
            // The process that created the directory has synced its name.
        }
    }

    /// <summary>Opens a file past the page cache; null where that cannot be, or whole blocks would change it.</summary>
    private static SafeFileHandle? OpenDirectly(PosixFile file)
    {
        if (!OperatingSystem.IsLinux() || file.Length % PosixAppendFile.BlockBytes != 0)
        {
            return null;
        }

        try
        {
            return OpenHandle(file.Path, PosixCalls.ReadWrite | PosixNumbers.LinuxDirect);
        }
        catch (DiskException)
        {
            return null;
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
    /// A held lock. It belongs to the open file, which a child process shares until it runs its own program. Closing
    /// the file alone would keep the lock until then, so it is released first.
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
