using System.Runtime;
using System.Runtime.InteropServices;
using Kahuna.Client.Wire.Buffers;

namespace Kahuna.Server.Hosting;

/// <summary>
/// Gives back memory that a piece of work has left. A node allocates so little that its collector hardly ever runs by itself, and RocksDB's leavings stay in the C library's heaps, so
/// that both would count as the process's for minutes. Stateless; any thread.
/// </summary>
internal static partial class IdleMemory
{
    private static bool s_trims = OperatingSystem.IsLinux();

    /// <summary>
    /// Begins a collection, and trims the C library's heaps. It runs beside everything else, unless half of the heap is holes: then kahuna-server moves its other objects together while everything
    /// stands still. The state takes no part: it is in few arrays without references that are never moved.
    /// </summary>
    public static void GiveBack()
    {
        GC.Collect(GC.MaxGeneration, GCCollectionMode.Forced, blocking: false);
        TrimNative();
    }

    /// <summary>Does the same, and drops idle buffers first.</summary>
    public static void GiveBackAll()
    {
        ForgetIdle();
        GiveBack();
    }

    /// <summary>
    /// Drops idle buffers, moves objects together, and gives all free parts of the heap back at once. Everything stands still meanwhile, for a time that grows with
    /// <see cref="CompactionBytes"/>.
    /// </summary>
    public static void Compact()
    {
        ForgetIdle();
        GCSettings.LargeObjectHeapCompactionMode = GCLargeObjectHeapCompactionMode.CompactOnce;
        GC.Collect(GC.MaxGeneration, GCCollectionMode.Aggressive, blocking: true, compacting: true);
        TrimNative();
    }

    /// <summary>What the latest collection left that a compaction would look at or move, and what it could give back. The state is not among it: its arrays are never moved, and hold no references.</summary>
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
