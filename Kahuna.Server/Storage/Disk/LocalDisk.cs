namespace Kahuna.Server.Storage.Disk;

/// <summary>The disk of this machine, for Linux, macOS or Windows. Any thread.</summary>
internal static class LocalDisk
{
    public static IDisk Shared { get; } = OperatingSystem.IsWindows() ? new WindowsDisk() : new PosixDisk();

    /// <summary>Lets the calling thread give way to all others, where threads have priorities of their own.</summary>
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
