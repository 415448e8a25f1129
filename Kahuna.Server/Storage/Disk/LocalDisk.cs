namespace Kahuna.Server.Storage.Disk;

/// <summary>The disk of this machine, on Linux, macOS or Windows. Any thread.</summary>
internal static class LocalDisk
{
    public static IDisk Shared { get; } = OperatingSystem.IsWindows() ? new WindowsDisk() : new PosixDisk();

    /// <summary>Lowers the priority of the calling thread, where the system has priorities per thread.</summary>
    public static void LowerThreadPriority()
    {
        if (OperatingSystem.IsLinux())
        {
            PosixCalls.LowerPriority();
        }
        else if (OperatingSystem.IsWindows())
        {
            Thread.CurrentThread.Priority = ThreadPriority.BelowNormal;
        }
    }
}
