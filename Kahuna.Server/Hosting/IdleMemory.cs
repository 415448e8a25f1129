using System.Runtime.InteropServices;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Gives back memory that a piece of work has left. A node allocates so little that its collector hardly ever runs by itself, and RocksDB's leavings stay in the C library's heaps, so
/// that both would count as the process's for minutes. Stateless; any thread.
/// </summary>
internal static partial class IdleMemory
{
    /// <summary>What a collection that stops everything may move: about a tenth of a second. States lie where nothing is moved (<see cref="Primitives.StillMemory"/>) and do not count.</summary>
    private const long MovableBytesMax = 256L << 20;

    private const int StillGeneration = 4;

    private static bool s_trims = OperatingSystem.IsLinux();

    /// <summary>Begins a collection, which runs beside everything else (the state is in few large arrays without references, so its pauses are a few milliseconds), and trims the C library's heaps.</summary>
    public static void GiveBack()
    {
        GC.Collect(GC.MaxGeneration, GCCollectionMode.Forced, blocking: false);
        TrimNative();
    }

    /// <summary>Gives back all that can be. Stops everything for some ten milliseconds; where more than that would have to be moved it does what <see cref="GiveBack"/> does.</summary>
    public static void GiveBackAll()
    {
        ReadOnlySpan<GCGenerationInfo> generations = GC.GetGCMemoryInfo(GCKind.Any).GenerationInfo;
        long movable = 0;
        for (int generation = 0; generation < Math.Min(generations.Length, StillGeneration); generation++)
        {
            movable += generations[generation].SizeAfterBytes;
        }

        if (movable > MovableBytesMax)
        {
            GiveBack();
            return;
        }

        GC.Collect(GC.MaxGeneration, GCCollectionMode.Aggressive, blocking: true, compacting: true);
        TrimNative();
    }

    private static void TrimNative()
    {
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
