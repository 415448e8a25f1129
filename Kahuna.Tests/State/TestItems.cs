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

    /// <summary>The condition that a range has so many keys.</summary>
    public static TestCommand Has(int keys, string from, string? to) => new(CommandKind.KeyRange, from)
    {
        Flags = CommandFlags.Number | CommandFlags.AtRevision | CommandFlags.IfRevision
            | (to is null ? 0 : CommandFlags.IfValue),
        Compared = to,
        ComparedRevision = 1,
        AtRevision = RangeRequest.Options(keys, RangeFlags.CountOnly),
    };

    /// <summary>The condition that a range has no keys.</summary>
    public static TestCommand None(string from, string? to) => Has(0, from, to);

    public static TestCommand Transaction(string key, TestCommand[] then) => Transaction(key, [], then);

    public static TestCommand Transaction(string key, TestCommand[] conditions, TestCommand[] then)
    {
        ByteBuffer body = ByteBuffer.Rent();
        WriteHeader(body, conditions, then.Length, 0);
        Append(body, [.. conditions, .. then]);
        return new TestCommand(CommandKind.Transaction, key) { Binary = body.Written.ToArray() };
    }

    public static void WriteHeader(ByteBuffer body, TestCommand[] conditions, int then, int @else) =>
        TransactionBody.WriteHeader(
            body,
            conditions.Length,
            then,
            @else,
            conditions.Count(static condition => condition.Kind == CommandKind.KeyRange));

    public static void Append(ByteBuffer target, IEnumerable<TestCommand> items)
    {
        foreach (TestCommand item in items)
        {
            Assert.True(Command.TryRead(item.Encode(), out Command command));
            CommandList.Append(target, in command);
        }
    }
}
