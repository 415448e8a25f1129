using System.Runtime.InteropServices;
using System.Runtime.Versioning;
using Microsoft.Win32.SafeHandles;

namespace Kahuna.Server.Storage.Disk;

/// <summary>
/// The system calls of a disk on Windows whose errors the class library hides, or that it lacks. Stateless.
/// </summary>
[SupportedOSPlatform("windows")]
internal static partial class WindowsCalls
{
    public const int FileNotFound = 2;
    public const int LockViolation = 33;

    private const uint GenericWrite = 0x40000000;
    private const uint ShareAll = 7;
    private const uint OpenExisting = 3;

    /// <summary>Without it a directory cannot be opened.</summary>
    private const uint BackupSemantics = 0x02000000;

    private const uint ReplaceExisting = 1;
    private const uint WriteThrough = 8;
    private const uint LockExclusively = 2;
    private const uint FailImmediately = 1;

    [return: MarshalAs(UnmanagedType.Bool)]
    [LibraryImport("kernel32", EntryPoint = "FlushFileBuffers", SetLastError = true)]
    public static partial bool Sync(SafeFileHandle file);

    public static bool Rename(string from, string to) => MoveFile(from, to, ReplaceExisting | WriteThrough);

    /// <summary>A handle with which the names in a directory can be synced.</summary>
    public static SafeFileHandle OpenDirectory(string path) =>
        CreateFile(path, GenericWrite, ShareAll, 0, OpenExisting, BackupSemantics, 0);

    /// <summary>Locks the first byte. False when it is locked already.</summary>
    public static unsafe bool TryLock(SafeFileHandle file)
    {
        NativeOverlapped first = default;
        return LockFile(file, LockExclusively | FailImmediately, 0, 1, 0, &first);
    }

    [return: MarshalAs(UnmanagedType.Bool)]
    [LibraryImport(
        "kernel32", EntryPoint = "MoveFileExW", SetLastError = true, StringMarshalling = StringMarshalling.Utf16)]
    private static partial bool MoveFile(string from, string to, uint flags);

    [LibraryImport(
        "kernel32", EntryPoint = "CreateFileW", SetLastError = true, StringMarshalling = StringMarshalling.Utf16)]
    private static partial SafeFileHandle CreateFile(
        string path, uint access, uint share, nint security, uint disposition, uint attributes, nint template);

    [return: MarshalAs(UnmanagedType.Bool)]
    [LibraryImport("kernel32", EntryPoint = "LockFileEx", SetLastError = true)]
    private static unsafe partial bool LockFile(
        SafeFileHandle file, uint flags, uint reserved, uint low, uint high, NativeOverlapped* at);
}
