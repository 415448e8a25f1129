using System.Runtime.InteropServices;
using System.Runtime.Versioning;
using Microsoft.Win32.SafeHandles;

namespace Kahuna.Server.Storage.Disk;

/// <summary>
/// Variadic functions of macOS's C library. On arm64 variadic arguments lie on the stack; a call with fixed arguments
/// puts them there when eight others fill the registers first. Stateless.
/// </summary>
[SupportedOSPlatform("macos")]
internal static partial class MacCalls
{
    /// <summary>Flushes written data through the drive's cache; fsync leaves it there.</summary>
    private const int FullSync = 51;

    /// <summary>Reads and writes bypass the system's page cache.</summary>
    private const int NoCache = 48;

    private static readonly bool s_onStack = RuntimeInformation.ProcessArchitecture == Architecture.Arm64;

    public static int Open(string path, int flags, int mode) =>
        s_onStack ? OpenOnStack(path, flags, 0, 0, 0, 0, 0, 0, mode) : OpenInRegisters(path, flags, mode);

    public static int FullySync(SafeFileHandle file) => Control(file, FullSync, 0);

    public static int PassCache(SafeFileHandle file) => Control(file, NoCache, 1);

    private static int Control(SafeFileHandle file, int command, int argument) =>
        s_onStack
            ? ControlOnStack(file, command, 0, 0, 0, 0, 0, 0, argument)
            : ControlInRegisters(file, command, argument);

    [LibraryImport("libc", EntryPoint = "open", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    private static partial int OpenInRegisters(string path, int flags, int mode);

    [LibraryImport("libc", EntryPoint = "open", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    private static partial int OpenOnStack(
        string path, int flags, nint third, nint fourth, nint fifth, nint sixth, nint seventh, nint eighth, nint mode);

    [LibraryImport("libc", EntryPoint = "fcntl", SetLastError = true)]
    private static partial int ControlInRegisters(SafeFileHandle file, int command, int argument);

    [LibraryImport("libc", EntryPoint = "fcntl", SetLastError = true)]
    private static partial int ControlOnStack(
        SafeFileHandle file,
        int command,
        nint third,
        nint fourth,
        nint fifth,
        nint sixth,
        nint seventh,
        nint eighth,
        nint argument);
}
