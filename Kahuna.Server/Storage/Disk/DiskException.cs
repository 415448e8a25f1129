using System.Globalization;
using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage.Disk;

/// <summary>A disk operation failed. Immutable.</summary>
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

    /// <summary>The disk is full, or the user's quota is.</summary>
    public bool IsNoSpace =>
        OperatingSystem.IsWindows()
            ? Number is WindowsDiskFull or WindowsHandleDiskFull
            : Number == NoSpaceLeft || Number == PosixNumbers.Current.Quota;

    /// <summary>The system's error number: errno, or the Windows error code.</summary>
    public int Number { get; }

    /// <summary>The error's text and the name of its number: "No space left on device (ENOSPC)".</summary>
    public string Reason { get; }

    /// <summary>Converts an exception of the class library.</summary>
    public static DiskException Of(string operation, string path, Exception error) =>
        new(operation, path, error.HResult & 0xFFFF);

    private static string Describe(int number) => $"{Marshal.GetPInvokeErrorMessage(number)} ({Name(number)})";

    /// <summary>
    /// Names of the error numbers that disk operations return on Linux and macOS. Others are shown as numbers.
    /// </summary>
    private static string Name(int number) => number switch
    {
        _ when OperatingSystem.IsWindows() => "error " + number.ToString(CultureInfo.InvariantCulture),
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
