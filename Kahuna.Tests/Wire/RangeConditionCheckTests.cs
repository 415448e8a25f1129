using System.Text;
using Kahuna.Tests.State;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Checks;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using static Kahuna.Tests.State.TestItems;

namespace Kahuna.Tests.Wire;

/// <summary>What a door refuses of the conditions of transactions about ranges.</summary>
public sealed class RangeConditionCheckTests
{
    private static readonly TestCommand s_good = Has(3, "a", "b");

    [Fact]
    public void Good_ones_pass()
    {
        string longest = new('k', Limits.KeyBytesMax);
        TestCommand[] good =
        [
            s_good,
            Has(0, "", null),
            Has(Limits.TransactionItemsMax, "a", "a\0"),
            Has(1, longest, longest + "\0"),
        ];
        foreach (TestCommand condition in good)
        {
            Assert.Null(Refusal(Transaction("x", [condition], [Write("x", "1")])));
            Assert.Null(Refusal(Transaction("x", [If("x", CommandFlags.IfPresent), condition], [Write("x", "1")])));
        }
    }

    [Fact]
    public void Others_are_refused_with_a_sentence()
    {
        (TestCommand Condition, string Sentence)[] bad =
        [
            (s_good with { AtRevision = RangeRequest.Options(1_001, RangeFlags.CountOnly) }, "1,001 keys"),
            (s_good with { AtRevision = RangeRequest.Options(1, RangeFlags.None) }, "malformed"),
            (s_good with { AtRevision = RangeRequest.Options(1, RangeFlags.CountOnly | RangeFlags.AfterStart) },
                "malformed"),
            (s_good with { Flags = s_good.Flags | CommandFlags.Ttl, TtlMs = 5 }, "malformed"),
            (s_good with { Binary = [1] }, "malformed"),
            (s_good with { Compared = "" }, "malformed"),
            (s_good with { Flags = s_good.Flags & ~CommandFlags.Number }, "names no partition"),
            (s_good with { Flags = s_good.Flags & ~CommandFlags.IfRevision }, "map of slots"),
            (s_good with { ComparedRevision = 0 }, "map of slots"),
            (s_good with { Number = -1 }, "names no partition"),
            (s_good with { Compared = "a" }, "to does not come after from"),
            (Has(1, new string('k', Limits.KeyBytesMax + 1), null), "longer than a key"),
            (Has(1, "a", new string('k', Limits.KeyBytesMax + 2)), "longer than a key"),
        ];
        foreach ((TestCommand condition, string sentence) in bad)
        {
            string? refusal = Refusal(Transaction("x", [condition], [Write("x", "1")]));
            Assert.Contains("condition 1: ", refusal, StringComparison.Ordinal);
            Assert.Contains(sentence, refusal, StringComparison.Ordinal);
        }
    }

    [Fact]
    public void They_come_last_and_are_counted()
    {
        Assert.Contains(
            "64", Refusal(Transaction("x", [.. Enumerable.Repeat(s_good, 65)], [Write("x", "1")])),
            StringComparison.Ordinal);
        TestCommand[] keys = [.. Enumerable.Repeat(If("x", CommandFlags.IfPresent), Limits.TransactionItemsMax)];
        Assert.Contains(
            "1,001 items", Refusal(Transaction("x", [.. keys, s_good], [Write("x", "1")])), StringComparison.Ordinal);
        Assert.Contains(
            "malformed",
            Refusal(Transaction("x", [s_good, If("x", CommandFlags.IfPresent)], [Write("x", "1")])),
            StringComparison.Ordinal);
        Assert.Contains("no operation", Refusal(Transaction("x", [], [s_good])), StringComparison.Ordinal);
        Assert.Contains("malformed", Refusal(WithRanges(2, [s_good])), StringComparison.Ordinal);
        Assert.Contains("malformed", Refusal(WithRanges(0, [s_good])), StringComparison.Ordinal);
    }

    [Fact]
    public void An_atomic_batch_of_reads_has_only_reads_of_keys()
    {
        foreach (CommandKind kind in Enum.GetValues<CommandKind>())
        {
            ByteBuffer list = ByteBuffer.Rent();
            Append(list, [new TestCommand(CommandKind.Get, "x"), new TestCommand(kind, "x")]);
            string? refusal = Refusal(new TestCommand(CommandKind.GetMany, "x") { Binary = list.Written.ToArray() });
            Assert.Equal(kind is CommandKind.Get or CommandKind.Exists, refusal is null);
        }
    }

    [Fact]
    public void A_whole_range_names_neither_partition_nor_map()
    {
        Command whole = RangeCondition.ToItem(Durability.Ephemeral, "a"u8, "b"u8, 2);
        Assert.Null(RangeConditionCheck.WholeRefusal(in whole));
        Assert.NotNull(RangeConditionCheck.Refusal(in whole));
        Command part = RangeCondition.ToPart(in whole, 1, 5, 9);
        Assert.Null(RangeConditionCheck.Refusal(in part));
        RangeCondition read = new(in part);
        Assert.Equal((1L, 5L, 9UL), (read.Count, read.Partition, read.MapVersion));
        Assert.Equal("a", Encoding.UTF8.GetString(read.Start));
        Assert.True(read.Contains("aa"u8));
        Assert.False(read.Contains("b"u8));
        Assert.False(read.Contains("A"u8));
    }

    [Fact]
    public void A_range_with_the_named_keys_has_to_be_divided_before_it_is_sent()
    {
        Command whole = RangeCondition.ToItem(Durability.Persistent, "a"u8, "b"u8, RangeCondition.AsNamed);
        Assert.Null(RangeConditionCheck.WholeRefusal(in whole));
        Command undivided = RangeCondition.ToPart(in whole, RangeCondition.AsNamed, 5, 9);
        Assert.Contains("2,147,483,647 keys", RangeConditionCheck.Refusal(in undivided), StringComparison.Ordinal);
        Command divided = RangeCondition.ToPart(in whole, 2, 5, 9);
        Assert.Null(RangeConditionCheck.Refusal(in divided));
    }

    private static TestCommand WithRanges(int ranges, TestCommand[] conditions)
    {
        ByteBuffer body = ByteBuffer.Rent();
        TransactionBody.WriteHeader(body, conditions.Length, 1, 0, ranges);
        Append(body, [.. conditions, Write("x", "1")]);
        return new TestCommand(CommandKind.Transaction, "a") { Binary = body.Written.ToArray() };
    }

    private static string? Refusal(TestCommand test)
    {
        Assert.True(Command.TryRead(test.Encode(), out Command command));
        return CommandCheck.IsGood(in command, 1 << 20, out OutcomeStatus _, out string? sentence) ? null : sentence;
    }
}
