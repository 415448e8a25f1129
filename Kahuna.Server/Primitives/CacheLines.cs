using System.Runtime.CompilerServices;
using System.Runtime.Intrinsics.X86;

namespace Kahuna.Server.Primitives;

/// <summary>
/// Prefetches memory into the processor's cache. Never waits and has no visible effect. Stateless; any thread.
/// </summary>
internal static class CacheLines
{
    private const int LineBytes = 64;

    /// <summary>Prefetches the cache line of a row or field.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public static unsafe void Prefetch<T>(ref readonly T place)
        where T : unmanaged
    {
        // The address may be stale if the collector just moves the object: the prefetch is wasted then, not wrong.
        if (Sse.IsSupported)
        {
            Sse.Prefetch0(Unsafe.AsPointer(ref Unsafe.AsRef(in place)));
        }
    }

    /// <summary>Prefetches the first lines of a span, at most <paramref name="linesMax"/>.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public static void Prefetch(ReadOnlySpan<byte> bytes, int linesMax)
    {
        for (int at = 0; at < bytes.Length && at < linesMax * LineBytes; at += LineBytes)
        {
            Prefetch(in bytes[at]);
        }
    }
}
