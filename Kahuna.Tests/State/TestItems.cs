using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.State;

/// <summary>Commands and items of transactions, for tests.</summary>
internal static class TestItems
{
    public static TestCommand Write(string key, string value) => new(CommandKind.Set, key, value);

    public static TestCommand Add(string key, long amount) =>
        new(CommandKind.Increment, key) { Flags = CommandFlags.Number, Number = amount };

    public static TestCommand If(string key, CommandFlags flag, string? compared = null) =>
        new(CommandKind.Exists, key) { Flags = flag, Compared = compared };

    public static TestCommand Range(CommandKind kind, string from, string? to) => new(kind, from)
    {
        Flags = CommandFlags.Number | CommandFlags.AtRevision | (to is null ? 0 : CommandFlags.IfValue),
        Compared = to,
        AtRevision = RangeRequest.Options(100, RangeFlags.None),
    };

    public static TestCommand GetMany(params string[] keys)
    {
        ByteBuffer list = ByteBuffer.Rent();
        Append(list, keys.Select(static key => new TestCommand(CommandKind.Get, key)));
        return new TestCommand(CommandKind.GetMany, keys[0]) { Binary = list.Written.ToArray() };
    }

    public static TestCommand Transaction(string key, TestCommand[] then)
    {
        ByteBuffer body = ByteBuffer.Rent();
        TransactionBody.WriteHeader(body, 0, then.Length, 0);
        Append(body, then);
        return new TestCommand(CommandKind.Transaction, key) { Binary = body.Written.ToArray() };
    }

    public static void Append(ByteBuffer target, IEnumerable<TestCommand> items)
    {
        foreach (TestCommand item in items)
        {
            Assert.True(Command.TryRead(item.Encode(), out Command command));
            CommandList.Append(target, in command);
        }
    }
}
