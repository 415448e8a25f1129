using System.Buffers.Binary;
using Kahuna.Wire.Buffers;

namespace Kahuna.Wire.Commands;

/// <summary>
/// The value of a <see cref="CommandKind.Transaction"/>, decoded in place: when all conditions hold, the first list is
/// carried out, otherwise the second one.
/// <code>
/// offset  0  u16  conditions
///         2  u16  operations of the first list
///         4  u16  operations of the second list
///         6  u16  how many conditions are about ranges, the last ones
///         8  the items in this order, as a <see cref="CommandList"/>
/// </code>
/// A condition is an Exists with the flags, compared value and compared revision of a write, or a
/// <see cref="RangeCondition"/>. Operations are Get, Exists, Set, Delete, Extend and Increment without conditions. Each
/// list has a key once at most, so the order of its operations does not matter.
/// </summary>
internal ref struct TransactionBody
{
    public const int HeaderBytes = 8;

    /// <summary>The flags of a condition.</summary>
    public const CommandFlags ConditionFlags = CommandFlags.IfAbsent
        | CommandFlags.IfPresent
        | CommandFlags.IfValue
        | CommandFlags.IfRevision
        | CommandFlags.NullCompared;

    public int Conditions;
    public int Then;
    public int Else;

    /// <summary>The last conditions, which are about ranges.</summary>
    public int Ranges;

    /// <summary>The items.</summary>
    public ReadOnlySpan<byte> Items;

    /// <summary>
    /// Decodes the header. False when the bytes are too few, or there are more ranges than conditions.
    /// </summary>
    public static bool TryRead(ReadOnlySpan<byte> source, out TransactionBody body)
    {
        body = default;
        if (source.Length < HeaderBytes)
        {
            return false;
        }

        body.Conditions = BinaryPrimitives.ReadUInt16LittleEndian(source);
        body.Then = BinaryPrimitives.ReadUInt16LittleEndian(source[2..]);
        body.Else = BinaryPrimitives.ReadUInt16LittleEndian(source[4..]);
        body.Ranges = BinaryPrimitives.ReadUInt16LittleEndian(source[6..]);
        body.Items = source[HeaderBytes..];
        return body.Ranges <= body.Conditions;
    }

    /// <summary>
    /// Appends the body of an atomic batch of writes: the conditions of all items; the items without them; and, for the
    /// case that one does not hold, a look at every key. Returns the number of conditions.
    /// </summary>
    /// <param name="target">Takes the body.</param>
    /// <param name="count">Items of the batch.</param>
    /// <param name="item">The encoded command of an item, which is valid.</param>
    public static int WriteBatch(ByteBuffer target, int count, Func<int, ReadOnlyMemory<byte>> item)
    {
        int at = target.Length;
        target.Take(HeaderBytes);
        int conditions = 0;
        for (int i = 0; i < count; i++)
        {
            Command.TryRead(item(i).Span, out Command command);
            if (command.Has(ConditionFlags))
            {
                command.Kind = CommandKind.Exists;
                command.Flags &= ConditionFlags;
                command.Value = default;
                CommandList.Append(target, in command);
                conditions++;
            }
        }

        for (int i = 0; i < count; i++)
        {
            Command.TryRead(item(i).Span, out Command command);
            command.Flags &= ~ConditionFlags;
            command.ComparedValue = default;
            CommandList.Append(target, in command);
        }

        for (int i = 0; i < count && conditions > 0; i++)
        {
            Command.TryRead(item(i).Span, out Command command);
            CommandList.Append(target, new Command
            {
                Kind = CommandKind.Exists,
                Durability = command.Durability,
                Key = command.Key,
            });
        }

        WriteHeader(target.Array.AsSpan(at, HeaderBytes), conditions, count, conditions == 0 ? 0 : count);
        return conditions;
    }

    /// <summary>Appends a header. The items follow.</summary>
    public static void WriteHeader(ByteBuffer target, int conditions, int then, int @else, int ranges = 0) =>
        WriteHeader(target.Take(HeaderBytes), conditions, then, @else, ranges);

    private static void WriteHeader(Span<byte> header, int conditions, int then, int @else, int ranges = 0)
    {
        header.Clear();
        BinaryPrimitives.WriteUInt16LittleEndian(header, checked((ushort)conditions));
        BinaryPrimitives.WriteUInt16LittleEndian(header[2..], checked((ushort)then));
        BinaryPrimitives.WriteUInt16LittleEndian(header[4..], checked((ushort)@else));
        BinaryPrimitives.WriteUInt16LittleEndian(header[6..], checked((ushort)ranges));
    }
}
