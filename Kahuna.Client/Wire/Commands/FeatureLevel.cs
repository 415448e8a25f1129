using System.Buffers.Binary;
using System.Globalization;

namespace Kahuna.Wire.Commands;

/// <summary>
/// A version of everything that the nodes of a cluster must do alike: log entries, commands and what applying them does
/// (docs/adr/0032-feature-levels.md). From 1 on; the default is <see cref="First"/>. A value.
/// </summary>
internal readonly record struct FeatureLevel : IComparable<FeatureLevel>
{
    /// <summary>The level of data that names no level.</summary>
    public static readonly FeatureLevel First;

    /// <param name="value">1 to 65,536.</param>
    public FeatureLevel(int value)
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(value, 1);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(value, ushort.MaxValue + 1);
        Encoded = (ushort)(value - 1);
    }

    /// <summary>The level minus 1, as formats carry it: zero, where older formats have nothing, is level 1.</summary>
    public ushort Encoded { get; }

    /// <summary>The number, from 1 on.</summary>
    public int Value => Encoded + 1;

    public static bool operator <(FeatureLevel a, FeatureLevel b) => a.Encoded < b.Encoded;

    public static bool operator >(FeatureLevel a, FeatureLevel b) => a.Encoded > b.Encoded;

    public static bool operator <=(FeatureLevel a, FeatureLevel b) => a.Encoded <= b.Encoded;

    public static bool operator >=(FeatureLevel a, FeatureLevel b) => a.Encoded >= b.Encoded;

    /// <summary>The level whose <see cref="Encoded"/> form this is.</summary>
    public static FeatureLevel Decode(ushort encoded) => new(encoded + 1);

    /// <summary>The higher of two levels.</summary>
    public static FeatureLevel Max(FeatureLevel a, FeatureLevel b) => a >= b ? a : b;

    /// <inheritdoc/>
    public int CompareTo(FeatureLevel other) => Encoded.CompareTo(other.Encoded);

    public override string ToString() => Value.ToString(CultureInfo.InvariantCulture);
}

/// <summary>The feature levels that a build supports. The default is level 1 alone. A value.</summary>
/// <param name="Min">The lowest.</param>
/// <param name="Max">The highest; not below <paramref name="Min"/>.</param>
internal readonly record struct FeatureRange(FeatureLevel Min, FeatureLevel Max)
{
    /// <summary>Length of the encoded form: <c>u16 min, u16 max</c>, little-endian, as numbers from 1 on.</summary>
    public const int Bytes = 2 * sizeof(ushort);

    /// <summary>Reads a range; false for a level 0, and for a lowest level above the highest.</summary>
    public static bool TryRead(ReadOnlySpan<byte> source, out FeatureRange range)
    {
        ushort min = BinaryPrimitives.ReadUInt16LittleEndian(source);
        ushort max = BinaryPrimitives.ReadUInt16LittleEndian(source[sizeof(ushort)..]);
        bool isRange = min > 0 && min <= max;
        range = isRange ? new FeatureRange(new FeatureLevel(min), new FeatureLevel(max)) : default;
        return isRange;
    }

    /// <summary>Writes the range; no release has a level above 65,535.</summary>
    public void Write(Span<byte> target)
    {
        BinaryPrimitives.WriteUInt16LittleEndian(target, checked((ushort)Min.Value));
        BinaryPrimitives.WriteUInt16LittleEndian(target[sizeof(ushort)..], checked((ushort)Max.Value));
    }

    public bool Contains(FeatureLevel level) => level >= Min && level <= Max;

    public override string ToString() => Min == Max ? $"level {Min}" : $"levels {Min} to {Max}";
}
