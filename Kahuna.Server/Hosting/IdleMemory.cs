using System.Runtime.InteropServices;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Gives back memory that a piece of background work has left. A node allocates so little that its collector hardly ever runs by itself, and RocksDB's leavings stay in the C library's heaps, so
/// that both would count as the process's for minutes. Stateless; the state thread.
/// </summary>
internal static partial class IdleMemory
{
    private static bool s_trims = OperatingSystem.IsLinux();

    /// <summary>Begins a collection, which runs beside everything else (the state is in few large arrays without references, so its pauses are a few milliseconds), and trims the C library's heaps.</summary>
    public static void GiveBack()
    {
        GC.Collect(GC.MaxGeneration, GCCollectionMode.Forced, blocking: false);
        if (!s_trims)
        {
            return;
        }

        try
        {
            _ = Trim(0);
        }
        catch (EntryPointNotFoundException)
        {
            // Only glibc has it.
            s_trims = false;
        }
    }

    [LibraryImport("libc", EntryPoint = "malloc_trim")]
    private static partial int Trim(nuint keep);
}
