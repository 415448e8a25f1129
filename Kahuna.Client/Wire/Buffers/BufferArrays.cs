using System.Buffers;

namespace Kahuna.Wire.Buffers;

/// <summary>
/// Pools of byte arrays. The shared pool keeps dozens of arrays of each size per processor, so a burst of large frames
/// would make it hold tens of MB forever. Large arrays therefore have a bounded pool: at most 15 MiB stay idle.
/// Stateless but for the pools; any thread.
/// </summary>
internal static class BufferArrays
{
    /// <summary>Arrays of up to this many bytes come from the shared pool.</summary>
    public const int SharedBytesMax = 128 << 10;

    /// <summary>Larger arrays are not pooled. An entry or append of 1 MiB with its header fits.</summary>
    public const int KeptBytesMax = 2 << 20;

    /// <summary>Idle large arrays of each size; sizes are powers of two.</summary>
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

    /// <summary>
    /// Drops the idle large arrays, so that they can be collected. Arrays rented at that moment return to the new pool.
    /// </summary>
    public static void ForgetIdle() => Volatile.Write(ref s_large, Fresh());

    private static ArrayPool<byte> Fresh() => ArrayPool<byte>.Create(KeptBytesMax, KeptPerSize);

    private static ArrayPool<byte> PoolOf(int bytes) => bytes <= SharedBytesMax ? ArrayPool<byte>.Shared : s_large;
}
