using System.Buffers.Binary;
using System.Globalization;

namespace Kahuna.Wire.Commands;

/// <summary>
/// The name of a transaction over several partitions: 16 random bytes, so that nobody can guess that of others. A
/// value.
/// </summary>
internal readonly record struct TransactionId(ulong High, ulong Low) : IComparable<TransactionId>
{
    /// <summary>Bytes of an id.</summary>
    public const int Bytes = 16;

    /// <summary>Reads an id from its bytes.</summary>
    public static TransactionId Read(ReadOnlySpan<byte> source) =>
        new(BinaryPrimitives.ReadUInt64BigEndian(source), BinaryPrimitives.ReadUInt64BigEndian(source[8..]));

    /// <summary>Writes the id to the start of <paramref name="target"/>.</summary>
    public void Write(Span<byte> target)
    {
        BinaryPrimitives.WriteUInt64BigEndian(target, High);
        BinaryPrimitives.WriteUInt64BigEndian(target[8..], Low);
    }

    /// <inheritdoc/>
    public int CompareTo(TransactionId other) =>
        High == other.High ? Low.CompareTo(other.Low) : High.CompareTo(other.High);

    /// <summary>The id, as 32 hexadecimal digits.</summary>
    public override string ToString() => string.Create(CultureInfo.InvariantCulture, $"{High:x16}{Low:x16}");
}
