using System.Buffers.Binary;
using System.Globalization;

namespace Kahuna.Wire.Commands;

/// <summary>
/// The definition of a sequence, as the value of the commands that create or change one, and at the front of its
/// description: <c>i64 initial, i64 increment, i64 min, i64 max, u8 flags (1: cycles), u8 mask of the changed parts (1
/// increment, 2 min, 4 max, 8 cycles; 0 for a new one)</c>. Little-endian. A value.
/// </summary>
internal struct SequenceBody
{
    public const int Bytes = 34;

    public const byte ChangesIncrement = 1;
    public const byte ChangesMin = 2;
    public const byte ChangesMax = 4;
    public const byte ChangesCycle = 8;
    private const byte FlagCycles = 1;

    public long Initial;
    public long Increment;
    public long Min;
    public long Max;
    public bool Cycles;
    public byte Mask;

    /// <summary>A new sequence; absent parts get their defaults.</summary>
    /// <param name="initial">
    /// The first value. Null: the least of an ascending sequence, the greatest of a descending one.
    /// </param>
    /// <param name="increment">The step from one value to the next.</param>
    /// <param name="least">The least value. Null: 1, or the least integer for a descending sequence.</param>
    /// <param name="greatest">The greatest value. Null: the greatest integer, or -1 for a descending sequence.</param>
    /// <param name="cycles">Whether the sequence restarts after its last value.</param>
    public static SequenceBody Of(long? initial, long increment, long? least, long? greatest, bool cycles)
    {
        long min = least ?? (increment > 0 ? 1 : long.MinValue);
        long max = greatest ?? (increment > 0 ? long.MaxValue : -1);
        long first = initial ?? (increment > 0 ? min : max);
        return new SequenceBody { Initial = first, Increment = increment, Min = min, Max = max, Cycles = cycles };
    }

    /// <summary>A change of a sequence; null leaves a part unchanged.</summary>
    public static SequenceBody ChangeOf(long? increment, long? min, long? max, bool? cycles) => new()
    {
        Increment = increment ?? 0,
        Min = min ?? 0,
        Max = max ?? 0,
        Cycles = cycles ?? false,
        Mask = (byte)((increment is null ? 0 : ChangesIncrement)
            | (min is null ? 0 : ChangesMin)
            | (max is null ? 0 : ChangesMax)
            | (cycles is null ? 0 : ChangesCycle)),
    };

    /// <summary>Decodes the body at the front of a value; false when it is too short or has unknown flags.</summary>
    public static bool TryRead(ReadOnlySpan<byte> source, out SequenceBody body)
    {
        body = default;
        if (source.Length < Bytes
            || source[32] > FlagCycles
            || source[33] > (ChangesIncrement | ChangesMin | ChangesMax | ChangesCycle))
        {
            return false;
        }

        body.Initial = BinaryPrimitives.ReadInt64LittleEndian(source);
        body.Increment = BinaryPrimitives.ReadInt64LittleEndian(source[8..]);
        body.Min = BinaryPrimitives.ReadInt64LittleEndian(source[16..]);
        body.Max = BinaryPrimitives.ReadInt64LittleEndian(source[24..]);
        body.Cycles = (source[32] & FlagCycles) != 0;
        body.Mask = source[33];
        return true;
    }

    public readonly void Write(Span<byte> target)
    {
        BinaryPrimitives.WriteInt64LittleEndian(target, Initial);
        BinaryPrimitives.WriteInt64LittleEndian(target[8..], Increment);
        BinaryPrimitives.WriteInt64LittleEndian(target[16..], Min);
        BinaryPrimitives.WriteInt64LittleEndian(target[24..], Max);
        target[32] = Cycles ? FlagCycles : (byte)0;
        target[33] = Mask;
    }

    /// <summary>Why the definition is invalid; null when it is valid.</summary>
    public readonly string? Refusal()
    {
        if (Increment == 0)
        {
            return "increment is 0; a sequence must move";
        }

        if (Min > Max)
        {
            return string.Create(CultureInfo.InvariantCulture, $"min is {Min}, which is above max, {Max}");
        }

        return Initial < Min || Initial > Max
            ? string.Create(
                CultureInfo.InvariantCulture, $"initial is {Initial}; it must be between min, {Min}, and max, {Max}")
            : null;
    }
}
