using System.Buffers.Binary;

namespace Kahuna.Wire.Outcomes;

/// <summary>
/// The value of the outcome of a prepared part: whether its conditions hold, and how each of its lists would end. The
/// outcomes of the conditions follow, as of a transaction.
/// <code>
/// offset  0  u8   1 = all conditions hold
///         1  u8   status of the first list: Applied, or why it cannot be carried out
///         2  u8   status of the second list
///         3  u8   reserved, 0
///         4  u32  first list: the operation that is not possible, from 0 on
///         8  u32  second list: the same
///        12  u32  first list: bytes of the values that its outcomes may have
///        16  u32  second list: the same
/// </code>
/// </summary>
/// <param name="Holds">All conditions hold.</param>
/// <param name="Then">How the first list would end.</param>
/// <param name="Else">How the second list would end.</param>
internal readonly record struct PrepareVote(bool Holds, ListForecast Then, ListForecast Else)
{
    public const int Bytes = 20;

    /// <summary>Reads a vote. False when the value has none.</summary>
    public static bool TryRead(ReadOnlySpan<byte> source, out PrepareVote vote, out ReadOnlySpan<byte> conditions)
    {
        vote = default;
        conditions = default;
        if (source.Length < Bytes)
        {
            return false;
        }

        vote = new PrepareVote(source[0] == 1, ForecastAt(source, 0), ForecastAt(source, 1));
        conditions = source[Bytes..];
        return true;
    }

    /// <summary>Writes the vote over the bytes that were taken for it.</summary>
    public void Write(Span<byte> target)
    {
        target[..Bytes].Clear();
        target[0] = Holds ? (byte)1 : (byte)0;
        Write(target, 0, Then);
        Write(target, 1, Else);
    }

    private static ListForecast ForecastAt(ReadOnlySpan<byte> source, int list) => new(
        (OutcomeStatus)source[1 + list],
        BinaryPrimitives.ReadUInt32LittleEndian(source[(4 + (4 * list))..]),
        BinaryPrimitives.ReadUInt32LittleEndian(source[(12 + (4 * list))..]));

    private static void Write(Span<byte> target, int list, ListForecast forecast)
    {
        target[1 + list] = (byte)forecast.Status;
        BinaryPrimitives.WriteUInt32LittleEndian(target[(4 + (4 * list))..], forecast.Operation);
        BinaryPrimitives.WriteUInt32LittleEndian(target[(12 + (4 * list))..], forecast.ValueBytes);
    }
}

/// <summary>How a list of operations would end.</summary>
/// <param name="Status">Applied, or why it cannot be carried out.</param>
/// <param name="Operation">The operation that is not possible, from 0 on.</param>
/// <param name="ValueBytes">The most bytes of values that its outcomes can have.</param>
internal readonly record struct ListForecast(OutcomeStatus Status, uint Operation, uint ValueBytes);

/// <summary>
/// Why a part was not prepared: the number of an outcome with <see cref="OutcomeStatus.ConditionFailed"/>. Values are
/// part of the wire format.
/// </summary>
internal enum PrepareRefusal : byte
{
    /// <summary>A condition does not hold, and the part was to be held only if all do. The value is the vote.</summary>
    ConditionFailed = 1,

    /// <summary>A key is held by another transaction.</summary>
    KeyHeld = 2,

    /// <summary>The transaction is over, or was prepared here before.</summary>
    Over = 3,

    /// <summary>The partition holds as much for transactions as it may.</summary>
    TooMany = 4,

    /// <summary>The ranges of the part have too many rows.</summary>
    RangeTooLarge = 5,
}
