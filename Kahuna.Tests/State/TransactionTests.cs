using System.Text;
using Kahuna.Server.State.KeyValues;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.State;

/// <summary>
/// A transaction of one partition takes effect as a whole or not at all; deletes of ranges go in steps.
/// </summary>
public sealed class TransactionTests
{
    private readonly StateDriver _state = new();
    private readonly StateDriver _follower = new();

    [Fact]
    public void All_operations_take_effect_when_the_conditions_hold()
    {
        Set("t/a", "1");
        Set("t/n", "40");
        Set("t/gone", "x");
        (OutcomeStatus status, List<Answer> outcomes) = Run(
            [If("t/a", CommandFlags.IfValue, compared: "1"), If("t/b", CommandFlags.IfAbsent)],
            [
                new TestCommand(CommandKind.Set, "t/a", "2") { Flags = CommandFlags.ReturnPrevious },
                new TestCommand(CommandKind.Set, "t/b", "new") { Flags = CommandFlags.Ttl, TtlMs = 50 },
                new TestCommand(CommandKind.Delete, "t/gone"),
                new TestCommand(CommandKind.Increment, "t/n") { Flags = CommandFlags.Number, Number = 2 },
                new TestCommand(CommandKind.Get, "t/none"),
                new TestCommand(CommandKind.Delete, "t/none2"),
            ]);
        Assert.Equal(OutcomeStatus.Applied, status);
        Assert.Equal(
            [
                new(OutcomeStatus.Applied, 1, 0, null, false),
                new(OutcomeStatus.Applied, 0, 0, null, false),
                new(OutcomeStatus.Applied, 2, 1, "1", false),
                new(OutcomeStatus.Applied, 1, 0, null, false),
                new(OutcomeStatus.Applied, 2, 1, null, false),
                new(OutcomeStatus.Applied, 2, 42, null, false),
                new(OutcomeStatus.NotFound, 0, 0, null, false),
                new(OutcomeStatus.NotFound, 0, 0, null, false),
            ],
            outcomes);
        Assert.Equal(("2", "new", null, "42"), (Get("t/a"), Get("t/b"), Get("t/gone"), Get("t/n")));
        _state.Now += 100;
        Assert.Null(Get("t/b"));
    }

    [Fact]
    public void Nothing_takes_effect_when_one_condition_does_not_hold()
    {
        Set("t/a", "1");
        (OutcomeStatus status, List<Answer> outcomes) = Run(
            [If("t/a", CommandFlags.IfPresent), If("t/a", CommandFlags.IfRevision, revision: 7)],
            [new TestCommand(CommandKind.Set, "t/a", "2"), new TestCommand(CommandKind.Set, "t/b", "2")],
            [new TestCommand(CommandKind.Get, "t/a"), new TestCommand(CommandKind.Set, "t/else", "yes")]);
        Assert.Equal(OutcomeStatus.ConditionFailed, status);
        Assert.Equal(
            [
                new(OutcomeStatus.Applied, 1, 0, null, false),
                new(OutcomeStatus.ConditionFailed, 1, 0, null, false),
                new(OutcomeStatus.Found, 1, -1, "1", false),
                new(OutcomeStatus.Applied, 1, 0, null, false),
            ],
            outcomes);
        Assert.Equal(("1", null, "yes"), (Get("t/a"), Get("t/b"), Get("t/else")));
    }

    [Fact]
    public void An_operation_that_cannot_be_done_undoes_the_whole()
    {
        Set("t/text", "no number");
        Set("t/max", long.MaxValue.ToString(System.Globalization.CultureInfo.InvariantCulture));
        TestCommand set = new(CommandKind.Set, "t/a", "1");
        (OutcomeStatus status, _) = Run([], [set, Add("t/text", 1)]);
        Assert.Equal(OutcomeStatus.NotAnInteger, status);
        (status, _) = Run([], [set, Add("t/max", 1)]);
        Assert.Equal(OutcomeStatus.Overflow, status);
        Assert.Null(Get("t/a"));
        string large = new('x', 900_000);
        for (int i = 0; i < 5; i++)
        {
            Set($"t/{i}", large);
        }

        (status, _) = Run(
            [], [set, .. Enumerable.Range(0, 5).Select(static i => new TestCommand(CommandKind.Get, $"t/{i}"))]);
        Assert.Equal(OutcomeStatus.ReplyTooLarge, status);
        Assert.Null(Get("t/a"));
        (status, List<Answer> four) = Run(
            [], [set, .. Enumerable.Range(0, 4).Select(static i => new TestCommand(CommandKind.Get, $"t/{i}"))]);
        Assert.Equal((OutcomeStatus.Applied, 5, large), (status, four.Count, four[4].Value));
    }

    [Fact]
    public void What_has_expired_is_not_there_for_conditions_and_operations()
    {
        Set("t/a", "5", ttlMs: 10);
        _state.Now += 20;
        (OutcomeStatus status, List<Answer> outcomes) = Run([If("t/a", CommandFlags.IfAbsent)], [Add("t/a", 1)]);
        Assert.Equal((OutcomeStatus.Applied, 1L), (status, outcomes[1].Number));
    }

    [Fact]
    public void A_transaction_that_comes_twice_takes_effect_once()
    {
        TestCommand add = Transaction([], [Add("t/n", 1), Add("t/m", 10)]);
        Answer first = Numbered(add, 1);
        Answer again = Numbered(add, 1);
        Assert.Equal(first, again);
        Assert.Equal(("1", "10"), (Get("t/n"), Get("t/m")));
        Assert.Equal(OutcomeStatus.NumberReused, Numbered(Transaction([], [Add("t/n", 2)]), 1).Status);
    }

    [Fact]
    public void Many_writes_at_once_do_not_outrun_the_limits_of_history()
    {
        StateDriver small = new(new() { HistoryBytes = 32_768 });
        string value = new('v', 100);
        for (int round = 0; round < 50; round++)
        {
            small.Do(Transaction(
                [], [.. Enumerable.Range(0, 500).Select(i => new TestCommand(CommandKind.Set, $"t/{i}", value))]));
        }

        Assert.InRange(small.Machine.Counts.History, 1, 400);

        // What is kept is the newest.
        Assert.Equal(OutcomeStatus.Found, small.Get("t/499", atRevision: 49).Status);
        small.Do(Delete("", "t/", null, 1_000));
        small.Do(Delete("", "t/", null, 1_000));
        small.Do(new TestCommand(CommandKind.Set, "other", "x"));
        Assert.InRange(small.Machine.Counts.History, 1, 400);
        Assert.Equal(1, small.Machine.Counts.Keys);
        Assert.InRange(small.Machine.Counts.Tombstones, 1, 450);
    }

    [Fact]
    public void Reads_of_many_keys_show_one_state()
    {
        Set("t/a", "1");
        Set("t/b", null);
        Answer answer = _state.Do(Many(
            [
                new TestCommand(CommandKind.Get, "t/a"),
                new TestCommand(CommandKind.Get, "t/b"),
                new TestCommand(CommandKind.Exists, "t/a"),
                new TestCommand(CommandKind.Get, "t/c"),
            ]));
        Assert.Equal((OutcomeStatus.Found, 4L), (answer.Status, answer.Number));
        Assert.Equal(
            [
                new(OutcomeStatus.Found, 1, -1, "1", false),
                new(OutcomeStatus.Found, 1, -1, "", true),
                new(OutcomeStatus.Found, 1, -1, null, false),
                new(OutcomeStatus.NotFound, 0, 0, null, false),
            ],
            Outcomes());
        string large = new('x', 1_000_000);
        Set("t/large", large);
        Assert.Equal(
            OutcomeStatus.ReplyTooLarge,
            _state.Do(Many([.. Enumerable.Repeat(new TestCommand(CommandKind.Get, "t/large"), 5)])).Status);
    }

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    public void A_range_is_deleted_in_steps_that_say_where_to_go_on(int seed)
    {
        Random random = new(seed);
        SortedSet<string> model = new(StringComparer.Ordinal);
        for (int i = 0; i < 9_000; i++)
        {
            string key = $"{(char)('a' + random.Next(3))}/{random.Next(6_000):0000}";
            Set(key, "v");
            model.Add(key);
        }

        (string? after, int steps, long gone) = (null, 0, 0);
        do
        {
            Answer step = Both(Delete(after ?? "b/", "b", after, random.Next(1, 2_000)));
            Assert.Equal(OutcomeStatus.Applied, step.Status);
            Assert.InRange(step.Number, 0, RangeDelete.KeysPerStep);
            gone += step.Number;
            Assert.True(RangePage.TryRead(_state.LastValue(), out RangePage page));
            Assert.Equal(step.Number, page.Count);
            after = page.HasMore ? Encoding.UTF8.GetString(page.Last) : null;
            Assert.InRange(++steps, 1, 1_000);
        }
        while (after is not null);
        Assert.Equal(model.RemoveWhere(static key => key[0] == 'b'), gone);
        foreach (char bucket in "abc")
        {
            Assert.Equal(
                model.Count(key => key[0] == bucket),
                Enumerable.Range(0, 6_000)
                    .Count(i => _state.Exists($"{bucket}/{i:0000}").Status == OutcomeStatus.Found));
        }

        Assert.Equal(_state.Machine.Digest, _follower.Machine.Digest);
        Assert.Equal(_state.Machine.RecomputeDigest(), _state.Machine.Digest);
    }

    private (OutcomeStatus Status, List<Answer> Outcomes) Run(
        TestCommand[] conditions, TestCommand[] then, TestCommand[]? @else = null)
    {
        Answer answer = Both(Transaction(conditions, then, @else ?? []));
        return (answer.Status, answer.Value is null ? [] : Outcomes());
    }

    private Answer Both(TestCommand command)
    {
        _follower.Now = _state.Now;
        _follower.Follow(command);
        Answer answer = _state.Do(command);
        Assert.Equal(_state.Machine.Digest, _follower.Machine.Digest);
        Assert.Equal(_state.Machine.RecomputeDigest(), _state.Machine.Digest);
        return answer;
    }

    private Answer Numbered(TestCommand command, ulong sequence)
    {
        Answer answer = _state.Numbered(command, session: 9, sequence);
        Assert.Equal(_state.Machine.RecomputeDigest(), _state.Machine.Digest);
        return answer;
    }

    private void Set(string key, string? value, long ttlMs = 0) => Both(new TestCommand(CommandKind.Set, key, value)
    {
        Flags = ttlMs == 0 ? CommandFlags.None : CommandFlags.Ttl,
        TtlMs = ttlMs,
    });

    private string? Get(string key) => _state.Get(key).Value;

    private static TestCommand Add(string key, long amount) =>
        new(CommandKind.Increment, key) { Flags = CommandFlags.Number, Number = amount };

    private static TestCommand If(string key, CommandFlags flags, string? compared = null, long revision = 0) =>
        new(CommandKind.Exists, key) { Flags = flags, Compared = compared, ComparedRevision = revision };

    private static TestCommand Transaction(TestCommand[] conditions, TestCommand[] then, TestCommand[]? @else = null)
    {
        ByteBuffer header = ByteBuffer.Rent();
        TransactionBody.WriteHeader(header, conditions.Length, then.Length, @else?.Length ?? 0);
        TestCommand[] items = [.. conditions, .. then, .. @else ?? []];
        return new TestCommand(CommandKind.Transaction, items[0].Key)
        {
            Binary = [.. header.Written, .. List(items)],
        };
    }

    private static TestCommand Many(TestCommand[] items) =>
        new(CommandKind.GetMany, items[0].Key) { Binary = List(items) };

    private static TestCommand Delete(string start, string prefix, string? after, int limit) =>
        new(CommandKind.KeyRangeDelete, start)
        {
            Flags = CommandFlags.Number | CommandFlags.AtRevision | CommandFlags.IfValue,
            Compared = prefix.TrimEnd('/') + "0",
            AtRevision = RangeRequest.Options(limit, after is null ? RangeFlags.None : RangeFlags.AfterStart),
        };

    private static byte[] List(TestCommand[] items) =>
        [.. items.SelectMany(static item => item.Encode() is var bytes
            ? (byte[])[.. BitConverter.GetBytes(bytes.Length), .. bytes]
            : [])];

    private List<Answer> Outcomes()
    {
        List<Answer> outcomes = [];
        ReadOnlySpan<byte> items = _state.LastValue();
        while (OutcomeList.TryTake(ref items, out Outcome outcome))
        {
            outcomes.Add(Answer.Of(in outcome));
        }

        Assert.True(items.IsEmpty);
        return outcomes;
    }
}
