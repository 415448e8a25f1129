using System.Runtime.InteropServices;

namespace Kahuna.Server.Transport;

/// <summary>
/// How many file descriptors this process may have, and from which number on a new connection would eat into what the log,
/// the peers and the runtime need. Immutable; any thread.
/// </summary>
internal sealed partial class DescriptorLimit
{
    /// <summary>
    /// Room that is kept free at any rate: log segments, links, and the runtime, which keeps every assembly that it loads open (a node that has started
    /// holds about 200 descriptors).
    /// </summary>
    private const int ReserveMin = 32;

    /// <summary>More than this is never needed beside connections.</summary>
    private const int ReserveMax = 1024;

    private const int LinuxNoFile = 7;
    private const int BsdNoFile = 8;

    public DescriptorLimit(long limit)
    {
        Limit = limit;
        Ceiling = limit - Math.Clamp(limit / 8, ReserveMin, ReserveMax);
    }

    /// <summary>Descriptors that the process may have.</summary>
    public long Limit { get; }

    /// <summary>A connection whose descriptor has this number or a greater one is refused.</summary>
    public long Ceiling { get; }

    /// <summary>The limit of this process; systems without such limits have none.</summary>
    public static DescriptorLimit OfThisProcess()
    {
        if (OperatingSystem.IsWindows())
        {
            return new DescriptorLimit(int.MaxValue);
        }

        int resource = OperatingSystem.IsLinux() ? LinuxNoFile : BsdNoFile;
        return new DescriptorLimit(GetLimit(resource, out ResourceLimit limit) == 0 ? (long)Math.Min(limit.Current, int.MaxValue) : ReserveMax);
    }

    /// <summary>
    /// True when a connection with this descriptor may stay. A new descriptor gets the lowest number that is free, so its
    /// number tells without counting how many are in use at least.
    /// </summary>
    public bool Admits(nint descriptor) => OperatingSystem.IsWindows() || descriptor < Ceiling;

    [LibraryImport("libc", EntryPoint = "getrlimit")]
    [DefaultDllImportSearchPaths(DllImportSearchPath.SafeDirectories)]
    private static partial int GetLimit(int resource, out ResourceLimit limit);

    /// <summary>struct rlimit: the soft limit, which holds, and the hard one up to which it may be raised (the runtime has done so).</summary>
    [StructLayout(LayoutKind.Sequential)]
    private readonly struct ResourceLimit
    {
        public readonly nuint Current;
        public readonly nuint Maximum;
    }
}
