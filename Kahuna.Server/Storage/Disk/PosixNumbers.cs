using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage.Disk;

/// <summary>Constants of the C library that differ between systems (fcntl.h, errno.h). Immutable.</summary>
/// <param name="Create">O_CREAT.</param>
/// <param name="Truncate">O_TRUNC.</param>
/// <param name="CloseOnExec">O_CLOEXEC.</param>
/// <param name="WouldBlock">EWOULDBLOCK.</param>
/// <param name="NotSupported">ENOTSUP.</param>
/// <param name="Quota">EDQUOT.</param>
internal sealed record PosixNumbers(
    int Create, int Truncate, int CloseOnExec, int WouldBlock, int NotSupported, int Quota)
{
    public static PosixNumbers Linux { get; } = new(
        Create: 0x40, Truncate: 0x200, CloseOnExec: 0x80000, WouldBlock: 11, NotSupported: 95, Quota: 122);

    public static PosixNumbers MacOS { get; } = new(
        Create: 0x200, Truncate: 0x400, CloseOnExec: 0x1000000, WouldBlock: 35, NotSupported: 45, Quota: 69);

    /// <summary>The constants of this system.</summary>
    public static PosixNumbers Current { get; } = OperatingSystem.IsMacOS() ? MacOS : Linux;

    /// <summary>O_DIRECT of Linux, which differs between processors.</summary>
    public static int LinuxDirect { get; } =
        RuntimeInformation.ProcessArchitecture is Architecture.Arm or Architecture.Arm64 ? 0x10000 : 0x4000;
}
