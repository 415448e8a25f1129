using System.Buffers;

namespace Kahuna.Client.Wire.Buffers;

/// <summary>
/// Arrays that are rented and returned. The shared pool of all sizes keeps dozens of arrays of each size per processor, so that after a burst of large frames it would hold tens of
/// MB for good. Large arrays have a pool with a bound: at most 15 MiB lie idle. Stateless but for the pools; any thread.
/// </summary>
internal static class BufferArrays
{
    /// <summary>Arrays of up to this many bytes come from the shared pool.</summary>
    public const int SharedBytesMax = 128 << 10;

    /// <summary>Larger arrays are not kept: one entry or append of 1 MiB with its header still is.</summary>
    public const int KeptBytesMax = 2 << 20;

    /// <summary>Idle large arrays of each size, which are powers of two.</summary>
    public const int KeptPerSize = 4;

    private static ArrayPool<byte> s_large = Fresh();

    /// <summary>An array of at least <paramref name="bytes"/> bytes. Its content is undefined.</summary>
    public static byte[] Rent(int bytes) => PoolOf(bytes).Rent(bytes);

    /// <summary>Returns an array that <see cref="Rent"/> gave; it must not be touched afterwards.</summary>
    public static void Return(byte[] array)
    {
        if (array.Length > 0)
        {
            PoolOf(array.Length).Return(array);
        }
    }

    /// <summary>Drops the idle large arrays, so that they can be collected. Arrays that are rented at that moment go to the new pool when they are returned.</summary>
    public static void ForgetIdle() => Volatile.Write(ref s_large, Fresh());

    private static ArrayPool<byte> Fresh() => ArrayPool<byte>.Create(KeptBytesMax, KeptPerSize);

    private static ArrayPool<byte> PoolOf(int bytes) => bytes <= SharedBytesMax ? ArrayPool<byte>.Shared : s_large;
}
