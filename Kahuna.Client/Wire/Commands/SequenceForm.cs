using System.Buffers.Binary;
using System.Globalization;

namespace Kahuna.Client.Wire.Commands;

/// <summary>
/// What a sequence is like, as the value of the commands that create or change one, and at the front of what is told of one:
/// <c>i64 initial, i64 increment, i64 min, i64 max, u8 flags (1: cycles), u8 mask of what a change changes (1 increment, 2 min, 4 max, 8 cycles; 0 for a new one)</c>. Little endian. A value.
/// </summary>
internal struct SequenceForm
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

    /// <summary>Reads the form at the front of a value; false when it is shorter, or has flags that this version does not know.</summary>
    public static bool TryRead(ReadOnlySpan<byte> source, out SequenceForm form)
    {
        form = default;
        if (source.Length < Bytes || source[32] > FlagCycles || source[33] > (ChangesIncrement | ChangesMin | ChangesMax | ChangesCycle))
        {
            return false;
        }

        form.Initial = BinaryPrimitives.ReadInt64LittleEndian(source);
        form.Increment = BinaryPrimitives.ReadInt64LittleEndian(source[8..]);
        form.Min = BinaryPrimitives.ReadInt64LittleEndian(source[16..]);
        form.Max = BinaryPrimitives.ReadInt64LittleEndian(source[24..]);
        form.Cycles = (source[32] & FlagCycles) != 0;
        form.Mask = source[33];
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

    /// <summary>Why no sequence can be like this; null when one can.</summary>
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
            ? string.Create(CultureInfo.InvariantCulture, $"initial is {Initial}; it must be between min, {Min}, and max, {Max}")
            : null;
    }
}
