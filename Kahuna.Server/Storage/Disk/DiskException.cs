using System.Globalization;
using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage.Disk;

/// <summary>The system refused a disk operation. Immutable.</summary>
internal sealed class DiskException : IOException
{
    public const int InputOutputError = 5;
    public const int NoSpaceLeft = 28;

    private const int WindowsHandleDiskFull = 39;
    private const int WindowsDiskFull = 112;

    public DiskException(string operation, string path, int number)
        : base($"{operation} {path} failed: {Describe(number)}.")
    {
        Number = number;
        Reason = Describe(number);
    }

    /// <summary>The disk, or the user's share of it, is full.</summary>
    public bool IsNoSpace => OperatingSystem.IsWindows() ? Number is WindowsDiskFull or WindowsHandleDiskFull : Number == NoSpaceLeft || Number == PosixNumbers.Current.Quota;

    /// <summary>The system's error number (errno, or that of Windows).</summary>
    public int Number { get; }

    /// <summary>The error in words, with the number's name: "No space left on device (ENOSPC)".</summary>
    public string Reason { get; }

    /// <summary>What an exception of the class library says of the disk.</summary>
    public static DiskException Of(string operation, string path, Exception error) => new(operation, path, error.HResult & 0xFFFF);

    private static string Describe(int number) => $"{Marshal.GetPInvokeErrorMessage(number)} ({Name(number)})";

    /// <summary>Names of those numbers that disks bring about on Linux and macOS; others are shown as numbers.</summary>
    private static string Name(int number) => OperatingSystem.IsWindows() ? "error " + number.ToString(CultureInfo.InvariantCulture) : number switch
    {
        1 => "EPERM",
        2 => "ENOENT",
        InputOutputError => "EIO",
        9 => "EBADF",
        12 => "ENOMEM",
        13 => "EACCES",
        17 => "EEXIST",
        20 => "ENOTDIR",
        21 => "EISDIR",
        22 => "EINVAL",
        24 => "EMFILE",
        27 => "EFBIG",
        NoSpaceLeft => "ENOSPC",
        30 => "EROFS",
        _ when number == PosixNumbers.Current.Quota => "EDQUOT",
        _ => "errno " + number.ToString(CultureInfo.InvariantCulture),
    };
}
