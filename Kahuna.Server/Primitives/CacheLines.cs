using System.Runtime.CompilerServices;
using System.Runtime.Intrinsics.X86;

namespace Kahuna.Server.Primitives;

/// <summary>Asks the processor for memory that will be read soon, without waiting for it. Changes nothing that a program can see. Stateless, any thread.</summary>
internal static class CacheLines
{
    private const int LineBytes = 64;

    /// <summary>The line of a row or field.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public static unsafe void Prefetch<T>(ref readonly T place)
        where T : unmanaged
    {
        // The address may be a stale one when the collector moves the object just now: a prefetch of it is wasted, not wrong.
        if (Sse.IsSupported)
        {
            Sse.Prefetch0(Unsafe.AsPointer(ref Unsafe.AsRef(in place)));
        }
    }

    /// <summary>The first lines of a span, at most <paramref name="linesMax"/>.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public static void Prefetch(ReadOnlySpan<byte> bytes, int linesMax)
    {
        for (int at = 0; at < bytes.Length && at < linesMax * LineBytes; at += LineBytes)
        {
            Prefetch(in bytes[at]);
        }
    }
}
