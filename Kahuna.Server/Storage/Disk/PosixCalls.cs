using System.Runtime.InteropServices;
using System.Runtime.Versioning;
using Microsoft.Win32.SafeHandles;

namespace Kahuna.Server.Storage.Disk;

/// <summary>
/// The system calls of the log's disk on Linux and macOS. The class library is not used because its flush hides the
/// errors of fsync. Stateless.
/// </summary>
internal static unsafe partial class PosixCalls
{
    public const int ReadOnly = 0;
    public const int ReadWrite = 2;

    public const int LockExclusive = 2;
    public const int LockNonBlocking = 4;
    public const int Unlock = 8;

    public const int NoEntry = 2;
    public const int Interrupted = 4;
    public const int NoAccess = 13;
    public const int Exists = 17;
    public const int Invalid = 22;

    public const int SeekEnd = 2;

    public static int Open(string path, int flags, int mode) =>
        OperatingSystem.IsMacOS() ? MacCalls.Open(path, flags, mode) : OpenFile(path, flags, mode);

    /// <summary>Brings the file's data and length to stable storage.</summary>
    public static int SyncData(SafeFileHandle file) => OperatingSystem.IsMacOS() ? SyncDrive(file) : SyncBytes(file);

    /// <summary>Brings a file's data and metadata, or the names in a directory, to stable storage.</summary>
    public static int Sync(SafeFileHandle file) => OperatingSystem.IsMacOS() ? SyncDrive(file) : SyncAll(file);

    /// <summary>Network file systems do not support the full sync; their plain sync is as good.</summary>
    [SupportedOSPlatform("macos")]
    private static int SyncDrive(SafeFileHandle file) =>
        MacCalls.FullySync(file) is var result
            && result != 0
            && Marshal.GetLastPInvokeError() is var error
            && error == PosixNumbers.MacOS.NotSupported
            ? SyncAll(file)
            : result;

    [LibraryImport("libc", EntryPoint = "open", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    private static partial int OpenFile(string path, int flags, int mode);

    [LibraryImport("libc", EntryPoint = "pread", SetLastError = true)]
    public static partial nint Read(SafeFileHandle file, byte* target, nint count, long offset);

    [LibraryImport("libc", EntryPoint = "pwrite", SetLastError = true)]
    public static partial nint Write(SafeFileHandle file, byte* source, nint count, long offset);

    [LibraryImport("libc", EntryPoint = "pwritev", SetLastError = true)]
    public static partial nint WriteVector(SafeFileHandle file, Vector* parts, int count, long offset);

    [LibraryImport("libc", EntryPoint = "lseek", SetLastError = true)]
    public static partial long Seek(SafeFileHandle file, long offset, int whence);

    [LibraryImport("libc", EntryPoint = "fdatasync", SetLastError = true)]
    private static partial int SyncBytes(SafeFileHandle file);

    [LibraryImport("libc", EntryPoint = "fsync", SetLastError = true)]
    private static partial int SyncAll(SafeFileHandle file);

    [LibraryImport("libc", EntryPoint = "flock", SetLastError = true)]
    public static partial int Lock(SafeFileHandle file, int operation);

    [LibraryImport("libc", EntryPoint = "rename", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    public static partial int Rename(string from, string to);

    [LibraryImport("libc", EntryPoint = "unlink", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    public static partial int Unlink(string path);

    [LibraryImport("libc", EntryPoint = "mkdir", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    public static partial int MakeDirectory(string path, int mode);

    /// <summary>Lowers the priority of the calling thread (on Linux, priorities are per thread).</summary>
    public static void LowerPriority() => _ = SetPriority(0, 0, 10);

    [LibraryImport("libc", EntryPoint = "setpriority")]
    private static partial int SetPriority(int which, int who, int priority);

    /// <summary>One part of a gather write (struct iovec).</summary>
    [StructLayout(LayoutKind.Sequential)]
    public struct Vector
    {
        public byte* Start;
        public nint Length;
    }
}
