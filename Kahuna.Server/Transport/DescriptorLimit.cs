using System.Runtime.InteropServices;

namespace Kahuna.Server.Transport;

/// <summary>
/// The file descriptor limit of this process, and the number from which new connections are refused to leave
/// descriptors for the log, the peers and the runtime. Immutable; any thread.
/// </summary>
internal sealed partial class DescriptorLimit
{
    /// <summary>
    /// Fewest descriptors to keep free: for log segments, links, and the runtime, which keeps every loaded assembly
    /// open (a started node holds about 200 descriptors).
    /// </summary>
    private const int ReserveMin = 32;

    /// <summary>Most descriptors needed besides connections.</summary>
    private const int ReserveMax = 1024;

    private const int LinuxNoFile = 7;
    private const int BsdNoFile = 8;

    public DescriptorLimit(long limit)
    {
        Limit = limit;
        Ceiling = limit - Math.Clamp(limit / 8, ReserveMin, ReserveMax);
    }

    /// <summary>Descriptors that the process may open.</summary>
    public long Limit { get; }

    /// <summary>A connection with this descriptor number or a greater one is refused.</summary>
    public long Ceiling { get; }

    /// <summary>The limit of this process. On Windows there is none.</summary>
    public static DescriptorLimit OfThisProcess()
    {
        if (OperatingSystem.IsWindows())
        {
            return new DescriptorLimit(int.MaxValue);
        }

        int resource = OperatingSystem.IsLinux() ? LinuxNoFile : BsdNoFile;
        return new DescriptorLimit(
            GetLimit(resource, out ResourceLimit limit) == 0
                ? (long)Math.Min(limit.Current, int.MaxValue)
                : ReserveMax);
    }

    /// <summary>
    /// True when a connection with this descriptor may stay. A new descriptor gets the lowest free number, so its
    /// number is a lower bound of the descriptors in use.
    /// </summary>
    public bool Admits(nint descriptor) => OperatingSystem.IsWindows() || descriptor < Ceiling;

    [LibraryImport("libc", EntryPoint = "getrlimit")]
    [DefaultDllImportSearchPaths(DllImportSearchPath.SafeDirectories)]
    private static partial int GetLimit(int resource, out ResourceLimit limit);

    /// <summary>
    /// struct rlimit: the soft limit, which applies, and the hard limit, up to which the runtime has raised it.
    /// </summary>
    [StructLayout(LayoutKind.Sequential)]
    private readonly struct ResourceLimit
    {
        public readonly nuint Current;
        public readonly nuint Maximum;
    }
}
