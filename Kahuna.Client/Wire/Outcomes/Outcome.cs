using System.Buffers.Binary;
using System.Text;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Watches;

namespace Kahuna.Wire.Outcomes;

/// <summary>
/// The answer to one command, decoded in place.
/// <code>
/// offset  0  u8   status
///         1  u8   flags: 1 a value is carried (else absent), 2 the carried value is null, 4 a point follows the value
///         2  u16  reserved, 0
///         4  u32  value length, with the point
///         8  i64  revision
///        16  i64  number
///        24  value, then the point: 24 bytes, of a read that asked for it
/// </code>
/// Number: the remaining time to live of a read in ms (-1: none); the new integer of an increment; the previous
/// revision of a set or delete (0: the key did not exist before); the leader's node id of NotLeader; the end of a lease
/// in cluster time. Revision of NotLeader and SlotMoved: a version of the map of slots. Value: the value of a get; the
/// previous value if requested; the message (UTF-8) of an error.
/// </summary>
internal ref struct Outcome
{
    public const int HeaderBytes = 24;
    private const byte FlagValue = 1;
    private const byte FlagNull = 2;
    private const byte FlagPoint = 4;

    public OutcomeStatus Status;
    public bool HasValue;
    public bool ValueIsNull;
    public long Revision;
    public long Number;
    public ReadOnlySpan<byte> Value;

    /// <summary>Up to where in its group's changes the read saw everything; null when it was not asked.</summary>
    public ChangePoint? Point;

    public Outcome(OutcomeStatus status, long revision = 0, long number = 0)
    {
        this = default;
        Status = status;
        Revision = revision;
        Number = number;
    }

    public static bool TryRead(ReadOnlySpan<byte> source, out Outcome outcome)
    {
        outcome = default;
        if (source.Length < HeaderBytes
            || BinaryPrimitives.ReadUInt32LittleEndian(source[4..]) != source.Length - HeaderBytes)
        {
            return false;
        }

        outcome.Status = (OutcomeStatus)source[0];
        outcome.HasValue = (source[1] & FlagValue) != 0;
        outcome.ValueIsNull = (source[1] & FlagNull) != 0;
        outcome.Revision = BinaryPrimitives.ReadInt64LittleEndian(source[8..]);
        outcome.Number = BinaryPrimitives.ReadInt64LittleEndian(source[16..]);
        outcome.Value = source[HeaderBytes..];
        if ((source[1] & FlagPoint) != 0)
        {
            if (outcome.Value.Length < ChangePoint.Bytes)
            {
                return false;
            }

            outcome.Point = ChangePoint.Read(outcome.Value[^ChangePoint.Bytes..]);
            outcome.Value = outcome.Value[..^ChangePoint.Bytes];
        }

        return true;
    }

    /// <summary>Adds a point to the written outcome that begins at <paramref name="at"/> and ends the buffer.</summary>
    public static void AppendPoint(ByteBuffer target, int at, ChangePoint point)
    {
        point.Write(target.Take(ChangePoint.Bytes));
        Span<byte> outcome = target.Array.AsSpan(at, target.Length - at);
        outcome[1] |= FlagPoint;
        BinaryPrimitives.WriteUInt32LittleEndian(outcome[4..], (uint)(outcome.Length - HeaderBytes));
    }

    public readonly void Write(ByteBuffer target)
    {
        Span<byte> span = target.Take(HeaderBytes + Value.Length);
        span[0] = (byte)Status;
        span[1] = (byte)((HasValue ? FlagValue : 0) | (ValueIsNull ? FlagNull : 0));
        span[2] = 0;
        span[3] = 0;
        BinaryPrimitives.WriteUInt32LittleEndian(span[4..], (uint)Value.Length);
        BinaryPrimitives.WriteInt64LittleEndian(span[8..], Revision);
        BinaryPrimitives.WriteInt64LittleEndian(span[16..], Number);
        Value.CopyTo(span[HeaderBytes..]);
    }

    /// <summary>Writes an error with its sentence. Not for hot paths.</summary>
    public static void WriteError(ByteBuffer target, OutcomeStatus status, string sentence, long number = 0) =>
        new Outcome(status, 0, number) { HasValue = true, Value = Encoding.UTF8.GetBytes(sentence) }.Write(target);
}
