using System.Numerics;

namespace Kahuna.Server.State.Rows;

/// <summary>
/// The sizes in which blocks are handed out: steps of 16 bytes up to 128, then eight steps per doubling, so that a
/// block above 128 bytes wastes less than an eighth of itself. Stateless, any thread.
/// </summary>
internal static class SizeClasses
{
    /// <summary>Largest block that is cut from a 64 KiB page: at least eight fit.</summary>
    public const int SmallBytesMax = 8 << 10;

    /// <summary>
    /// Largest block that is cut from a slab of 1 MiB: at least eight fit. Larger ones have an array of their own.
    /// </summary>
    public const int MediumBytesMax = 128 << 10;

    /// <summary>Largest block: a key and a value at the ceiling of the configurable limit fit well.</summary>
    public const int BytesMax = 32 << 20;

    private const int LinearClasses = 8;
    private const int LinearShift = 4;
    private const int LinearBytesLog2 = 7;
    private const int StepsLog2 = 3;

    /// <summary>Number of classes.</summary>
    public static int Count { get; } = Of(BytesMax) + 1;

    /// <summary>First class of medium blocks.</summary>
    public static int FirstMedium { get; } = Of(SmallBytesMax) + 1;

    /// <summary>First class of large blocks.</summary>
    public static int FirstLarge { get; } = Of(MediumBytesMax) + 1;

    /// <summary>The smallest class whose blocks hold <paramref name="bytes"/>.</summary>
    public static int Of(int bytes)
    {
        if (bytes <= LinearClasses << LinearShift)
        {
            return bytes <= 1 << LinearShift ? 0 : (bytes - 1) >> LinearShift;
        }

        int last = bytes - 1;
        int log2 = BitOperations.Log2((uint)last);
        return LinearClasses
            + ((log2 - LinearBytesLog2) << StepsLog2)
            + ((last >> (log2 - StepsLog2)) & ((1 << StepsLog2) - 1));
    }

    /// <summary>Bytes of the blocks of a class; always a multiple of 16.</summary>
    public static int BytesOf(int sizeClass)
    {
        if (sizeClass < LinearClasses)
        {
            return (sizeClass + 1) << LinearShift;
        }

        int above = sizeClass - LinearClasses;
        int log2 = LinearBytesLog2 + (above >> StepsLog2);
        return (1 << log2) + (((above & ((1 << StepsLog2) - 1)) + 1) << (log2 - StepsLog2));
    }
}
