using System.Buffers.Binary;
using Kahuna.Wire.Buffers;

namespace Kahuna.Wire.Outcomes;

/// <summary>
/// Outcomes one after the other, each preceded by its length (u32): the value of the outcome of a command that has
/// items. Of a transaction: those of its conditions (Applied: it holds), then those of the list that was carried out.
/// Stateless, any thread.
/// </summary>
internal static class OutcomeList
{
    /// <summary>Bytes before each outcome.</summary>
    public const int ItemHeaderBytes = sizeof(uint);

    /// <summary>Begins an item, whose outcome is appended next. Returns where it begins.</summary>
    public static int Begin(ByteBuffer target)
    {
        int at = target.Length;
        target.Take(ItemHeaderBytes);
        return at;
    }

    /// <summary>Ends the item that began there.</summary>
    public static void End(ByteBuffer target, int at) =>
        BinaryPrimitives.WriteUInt32LittleEndian(
            target.Array.AsSpan(at), (uint)(target.Length - at - ItemHeaderBytes));

    /// <summary>
    /// The outcome of an item of an atomic batch that was not carried out, because a condition did not hold: from that
    /// of the look at its key.
    /// </summary>
    public static byte[] AsNotCarriedOut(scoped in Outcome look)
    {
        ByteBuffer bytes = ByteBuffer.Rent();
        Outcome outcome = look.Status == OutcomeStatus.Found
            ? new Outcome(OutcomeStatus.ConditionFailed, look.Revision, look.Revision)
            : new Outcome(OutcomeStatus.ConditionFailed);
        outcome.Write(bytes);
        byte[] copy = bytes.Written.ToArray();
        bytes.Return();
        return copy;
    }

    /// <summary>Takes the first outcome off the list. False at the end, and for bytes that are none.</summary>
    public static bool TryTake(ref ReadOnlySpan<byte> items, out Outcome outcome)
    {
        outcome = default;
        if (items.Length < ItemHeaderBytes)
        {
            return false;
        }

        uint length = BinaryPrimitives.ReadUInt32LittleEndian(items);
        if (length > (uint)(items.Length - ItemHeaderBytes)
            || !Outcome.TryRead(items.Slice(ItemHeaderBytes, (int)length), out outcome))
        {
            return false;
        }

        items = items[(ItemHeaderBytes + (int)length)..];
        return true;
    }
}
