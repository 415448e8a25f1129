using System.Text;
using Kahuna.Server.Access;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Access;

/// <summary>A client's command for tests of rights, in plain fields. Immutable.</summary>
internal sealed record AccessCommand(CommandKind Kind, string Key = "")
{
    public Durability Durability { get; init; } = Durability.Persistent;

    public CommandFlags Flags { get; init; }

    /// <summary>The end of a range; null: it has none.</summary>
    public string? End { get; init; }

    /// <summary>The lock of a fence; null: there is none.</summary>
    public string? Fence { get; init; }

    /// <summary>The items of a command that has some.</summary>
    public IReadOnlyList<AccessCommand> Items { get; init; } = [];

    /// <summary>The value of other commands.</summary>
    public byte[] Value { get; init; } = [];

    /// <summary>Why the command is refused; null: it is allowed.</summary>
    public string? Refusal(Rights rights)
    {
        byte[] bytes = Encode();
        Assert.True(Command.TryRead(bytes, out Command command));
        return CommandRights.Refusal(rights, in command);
    }

    public byte[] Encode()
    {
        CommandKindRow row = CommandKinds.Of(Kind);
        bool isRange = row.Has(CommandTraits.IsList) && row.Table == CommandTable.KeyValues;
        Command command = new()
        {
            Kind = Kind,
            Durability = Durability,
            Flags = Flags
                | (End is null ? 0 : CommandFlags.IfValue)
                | (isRange ? CommandFlags.Number | CommandFlags.AtRevision : 0)
                | (Fence is null ? 0 : CommandFlags.Fenced),
            Key = Bytes(Key),
            ComparedValue = Bytes(End ?? ""),
            AtRevision = 1,
            FenceToken = 1,
            FenceName = Bytes(Fence ?? ""),
            Value = Items.Count > 0 ? EncodeItems() : Value,
        };
        ByteBuffer buffer = ByteBuffer.Rent();
        command.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    /// <summary>One command of each kind that clients may send; null for a kind that the tests do not know.</summary>
    public static AccessCommand? Sample(CommandKind kind) => kind switch
    {
        CommandKind.GetMany => new AccessCommand(kind, "k") { Items = [new AccessCommand(CommandKind.Get, "k")] },
        CommandKind.Transaction or CommandKind.TransactionPrepare =>
            new AccessCommand(kind, "k") { Items = [new AccessCommand(CommandKind.Set, "k")] },
        _ when CommandKinds.Has(kind, CommandTraits.HasItems) => null,
        _ => new AccessCommand(kind, "k"),
    };

    public static byte[] Bytes(string text) => Encoding.UTF8.GetBytes(text);

    private byte[] EncodeItems()
    {
        ByteBuffer value = ByteBuffer.Rent();
        if (Kind == CommandKind.TransactionPrepare)
        {
            PrepareBody.WriteHeader(value, default, 1000, PrepareFlags.None, Bytes("anchor"), 0);
        }

        if (Kind != CommandKind.GetMany)
        {
            int ranges = Items.Count(static item => item.Kind == CommandKind.KeyRange);
            TransactionBody.WriteHeader(value, ranges, Items.Count - ranges, 0, ranges);
        }

        foreach (AccessCommand item in Items)
        {
            byte[] bytes = item.Encode();
            Assert.True(Command.TryRead(bytes, out Command command));
            CommandList.Append(value, in command);
        }

        byte[] encoded = value.Written.ToArray();
        value.Return();
        return encoded;
    }
}
