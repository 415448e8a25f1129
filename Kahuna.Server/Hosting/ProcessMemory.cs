using System.Runtime;
using System.Runtime.InteropServices;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Returns unused memory to the system. A node allocates so little that its garbage collector rarely runs, and
/// RocksDB's freed memory stays in the heaps of the C library. Stateless; any thread.
/// </summary>
internal static partial class ProcessMemory
{
    private static bool s_trims = OperatingSystem.IsLinux();

    /// <summary>
    /// Starts a background collection and trims the heaps of the C library. If half of the heap is fragmented, the
    /// collector compacts it and suspends all threads meanwhile. It does not scan the state: that consists of few
    /// arrays, without references, that never move.
    /// </summary>
    public static void Trim()
    {
        GC.Collect(GC.MaxGeneration, GCCollectionMode.Forced, blocking: false);
        TrimNative();
    }

    /// <summary>Drops idle buffers, then does the same.</summary>
    public static void TrimAll()
    {
        ForgetIdle();
        Trim();
    }

    /// <summary>
    /// Drops idle buffers, compacts the heap and returns all free memory at once. All threads are suspended meanwhile,
    /// for a time that grows with <see cref="CompactionBytes"/>.
    /// </summary>
    public static void Compact()
    {
        ForgetIdle();
        GCSettings.LargeObjectHeapCompactionMode = GCLargeObjectHeapCompactionMode.CompactOnce;
        GC.Collect(GC.MaxGeneration, GCCollectionMode.Aggressive, blocking: true, compacting: true);
        TrimNative();
    }

    /// <summary>
    /// Bytes that a compaction would scan, move or return, as of the latest collection. The state is not included: its
    /// arrays never move and hold no references.
    /// </summary>
    public static long CompactionBytes()
    {
        GCMemoryInfo heap = GC.GetGCMemoryInfo();
        long bytes = Math.Max(0, heap.TotalCommittedBytes - heap.HeapSizeBytes);
        foreach (GCGenerationInfo generation in heap.GenerationInfo[..^1])
        {
            bytes += generation.SizeAfterBytes;
        }

        return bytes;
    }

    private static void ForgetIdle()
    {
        ByteBuffer.ForgetIdle();
        BufferArrays.ForgetIdle();
    }

    private static void TrimNative()
    {
        if (!s_trims)
        {
            return;
        }

        try
        {
            _ = MallocTrim(0);
        }
        catch (EntryPointNotFoundException)
        {
            // Only glibc has it.
            s_trims = false;
        }
    }

    [LibraryImport("libc", EntryPoint = "malloc_trim")]
    private static partial int MallocTrim(nuint keep);
}
