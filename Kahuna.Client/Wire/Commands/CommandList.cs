using System.Buffers.Binary;
using Kahuna.Wire.Buffers;

namespace Kahuna.Wire.Commands;

/// <summary>
/// Commands one after the other, each preceded by its length (u32): the value of a command that has
/// <see cref="CommandTraits.HasItems"/>. Stateless, any thread.
/// </summary>
internal static class CommandList
{
    /// <summary>Bytes before each command.</summary>
    public const int ItemHeaderBytes = sizeof(uint);

    /// <summary>Appends a command.</summary>
    public static void Append(ByteBuffer target, scoped in Command command)
    {
        BinaryPrimitives.WriteUInt32LittleEndian(target.Take(ItemHeaderBytes), (uint)command.EncodedBytes);
        command.Write(target);
    }

    /// <summary>
    /// Takes the first command off the list. False at the end, and for bytes that are none. An item has no account of
    /// its own.
    /// </summary>
    public static bool TryTake(scoped ref ReadOnlySpan<byte> items, out Command command)
    {
        command = default;
        ReadOnlySpan<byte> rest = items;
        if (!TryTakeBytes(ref rest, out ReadOnlySpan<byte> bytes)
            || !Command.TryRead(bytes, out command)
            || command.Account != 0)
        {
            return false;
        }

        items = rest;
        return true;
    }

    /// <summary>Takes the first command off the list, encoded. False at the end, and for bytes that are none.</summary>
    public static bool TryTakeBytes(scoped ref ReadOnlySpan<byte> items, out ReadOnlySpan<byte> command)
    {
        command = default;
        if (items.Length < ItemHeaderBytes)
        {
            return false;
        }

        uint length = BinaryPrimitives.ReadUInt32LittleEndian(items);
        if (length > (uint)(items.Length - ItemHeaderBytes))
        {
            return false;
        }

        command = items.Slice(ItemHeaderBytes, (int)length);
        items = items[(ItemHeaderBytes + (int)length)..];
        return true;
    }

    /// <summary>
    /// The items of a command that has some; those of a transaction, or of a part of one, are its conditions and both
    /// lists.
    /// </summary>
    public static ReadOnlySpan<byte> ItemsOf(scoped in Command command)
    {
        ReadOnlySpan<byte> value = command.Value;
        if (command.Kind == CommandKind.TransactionPrepare)
        {
            value = PrepareBody.TryRead(value, out PrepareBody prepare) ? prepare.Part : default;
        }

        return command.Kind is CommandKind.Transaction or CommandKind.TransactionPrepare
            && TransactionBody.TryRead(value, out TransactionBody body) ? body.Items : value;
    }
}
