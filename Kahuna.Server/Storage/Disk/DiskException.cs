using System.Globalization;
using System.Runtime.InteropServices;

namespace Kahuna.Server.Storage.Disk;

/// <summary>The system refused a disk operation. Immutable.</summary>
internal sealed class DiskException : IOException
{
    public const int InputOutputError = 5;
    public const int NoSpaceLeft = 28;

    public DiskException(string operation, string path, int number)
        : base($"{operation} {path} failed: {Describe(number)}.")
    {
        Number = number;
        Reason = Describe(number);
    }

    /// <summary>The system's error number (errno).</summary>
    public int Number { get; }

    /// <summary>The error in words, with the number's name: "No space left on device (ENOSPC)".</summary>
    public string Reason { get; }

    private static string Describe(int number) => $"{Marshal.GetPInvokeErrorMessage(number)} ({Name(number)})";

    /// <summary>Names of those numbers that disks bring about on Linux; others are shown as numbers.</summary>
    private static string Name(int number) => number switch
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
        122 => "EDQUOT",
        _ => "errno " + number.ToString(CultureInfo.InvariantCulture),
    };
}
