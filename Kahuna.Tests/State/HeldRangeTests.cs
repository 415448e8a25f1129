using Kahuna.Server.State.KeyValues;
using Kahuna.Server.State.Rows;
using Kahuna.Wire;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using static Kahuna.Tests.State.TestItems;

namespace Kahuna.Tests.State;

/// <summary>
/// Ranges that a transaction depends on: how their keys are counted, and that nothing comes or goes while a prepared
/// part holds them.
/// </summary>
public sealed class HeldRangeTests : TwoPhaseTests
{
    private static readonly TransactionId s_other = new(7, 8);

    [Fact]
    public void A_range_has_the_keys_from_its_start_to_before_its_end()
    {
        Set("q/", "1");
        Set("q/a", "1");
        Set("q/b", "1");
        Set("q0", "1");
        Set("p", "1");
        Assert.Equal(2, CountOf("q/a", "q0"));
        Assert.Equal(3, CountOf("q/", "q0"));
        Assert.Equal(1, CountOf("q/a", "q/b"));
        Assert.Equal(1, CountOf("q/b", "q/b\0"));
        Assert.Equal(0, CountOf("q/aa", "q/b"));
        Assert.Equal(5, CountOf("", null));
        Assert.Equal(1, CountOf("q/c", null));
    }

    [Fact]
    public void Deleted_and_expired_keys_are_not_in_a_range()
    {
        Set("q/a", "1");
        Set("q/b", "1", ttlMs: 100);
        Set("q/c", "1");
        Do(new TestCommand(CommandKind.Delete, "q/c"));
        Assert.Equal(2, CountOf("q/", "q0"));
        State.Now += 100;
        Assert.Equal(1, CountOf("q/", "q0"));
        RequireSame();
    }

    [Fact]
    public void A_range_of_more_keys_than_one_step_is_counted()
    {
        for (int i = 0; i < 1_000; i++)
        {
            Set($"q/{i:d4}", "1");
        }

        Assert.Equal(1_000, CountOf("q/", "q0"));
        Assert.Equal(64, CountOf("q/0000", "q/0064"));
        Assert.Equal(65, CountOf("q/0100", "q/0165"));
    }

    [Fact]
    public void A_transaction_that_finds_another_number_of_keys_writes_nothing()
    {
        Set("q/a", "1");
        TestCommand command = Transaction("a/x", [None("q/", "q0")], [Write("a/x", "1")]);
        Answer answer = Do(command);
        Assert.Equal(OutcomeStatus.ConditionFailed, answer.Status);
        Assert.Equal([new(OutcomeStatus.ConditionFailed, 0, 1, null, false)], Outcomes());
        Do(new TestCommand(CommandKind.Delete, "q/a"));
        answer = Do(command);
        Assert.Equal(OutcomeStatus.Applied, answer.Status);
        Assert.Equal(new Answer(OutcomeStatus.Applied, 0, 0, null, false), Outcomes()[0]);
        Assert.Equal("1", Get("a/x"));
        RequireSame();
    }

    [Fact]
    public void Nobody_else_writes_a_key_of_a_held_range()
    {
        Set("q/a", "1");
        Prepare([If("q/a", CommandFlags.IfPresent), Has(1, "q/", "q0")], [Write("a/x", "1")]);
        Assert.Equal(1, State.Machine.KeyValues.Prepared.Counts.Parts);
        foreach (string key in new[] { "q/a", "q/b", "q/", "q/zz" })
        {
            TestCommand[] writes =
            [
                Write(key, "other"),
                new TestCommand(CommandKind.Delete, key),
                new TestCommand(CommandKind.Extend, key) { Flags = CommandFlags.Ttl, TtlMs = 5 },
                Add(key, 1),
                Transaction("a/z", [Write("a/z", "1"), Write(key, "1")]),
                Range(CommandKind.KeyRangeDelete, "q", "q/b"),
                Range(CommandKind.KeyRangeDelete, "q/zzz", null),
                new TestCommand(CommandKind.Script, "q/x") { Binary = [1] },
            ];
            foreach (TestCommand write in writes)
            {
                Assert.Equal(OutcomeStatus.KeyInTransaction, Do(write).Status);
            }
        }

        foreach (string key in new[] { "q", "q.", "q0", "p", "r/a" })
        {
            Assert.Equal(OutcomeStatus.Applied, Set(key, "other").Status);
        }

        Assert.Equal(OutcomeStatus.Applied, Do(Range(CommandKind.KeyRangeDelete, "q0", "q1")).Status);
        Assert.Equal(OutcomeStatus.Applied, Do(Range(CommandKind.KeyRangeDelete, "b", "q/")).Status);
        Finish(TransactionDecision.Abort);
        Assert.Equal(OutcomeStatus.Applied, Set("q/b", "other").Status);
        RequireSame();
    }

    [Fact]
    public void Others_read_a_held_range_without_waiting()
    {
        Prepare([None("q/", "q0")], [Write("a/x", "1")]);
        Assert.False(Delays(new TestCommand(CommandKind.Get, "q/a")));
        Assert.False(Delays(Range(CommandKind.KeyRange, "q/", "q0")));
        Assert.Equal(OutcomeStatus.Applied, Do(Transaction("q/a", [None("q/", "q0")], [Look("q/a")])).Status);
    }

    [Fact]
    public void Transactions_share_a_range_that_none_of_them_writes()
    {
        Assert.Equal(OutcomeStatus.Applied, Prepare([None("q/", "q0")], [Write("a/x", "1")]).Status);
        Assert.Equal(OutcomeStatus.Applied, Prepare([None("q/", "q9")], [Write("a/y", "1")], id: s_other).Status);
        Finish(TransactionDecision.Then);
        Assert.Equal(OutcomeStatus.KeyInTransaction, Set("q/b", "1").Status);
        Finish(TransactionDecision.Then, s_other);
        Assert.Equal(OutcomeStatus.Applied, Set("q/b", "1").Status);
        Assert.Equal(default, State.Machine.KeyValues.Prepared.Counts);
    }

    [Fact]
    public void A_part_that_writes_into_a_held_range_is_refused()
    {
        Prepare([None("q/", "q0")], [Write("a/x", "1")]);
        Assert.Equal(
            (long)PrepareRefusal.KeyHeld, Prepare([], [Write("q/b", "1")], id: s_other).Number);
        Assert.Equal(OutcomeStatus.Applied, Prepare([], [Look("q/b")], id: s_other).Status);
    }

    [Fact]
    public void A_range_with_a_key_that_another_transaction_writes_is_refused()
    {
        Prepare([], [Write("q/b", "1")]);
        Assert.Equal((long)PrepareRefusal.KeyHeld, Prepare([None("q/", "q0")], [], id: s_other).Number);
        Assert.Equal(
            OutcomeStatus.KeyInTransaction, Do(Transaction("a/x", [None("q/", "q0")], [Write("a/x", "1")])).Status);
        Assert.Equal(
            OutcomeStatus.Applied, Do(Transaction("a/x", [None("q/c", "q0")], [Write("a/x", "1")])).Status);
        Finish(TransactionDecision.Then);
        Answer answer = Prepare([Has(1, "q/", "q0")], [Write("q/c", "1")], id: s_other);
        Assert.Equal(OutcomeStatus.Applied, answer.Status);
    }

    [Fact]
    public void A_transaction_writes_within_its_own_range()
    {
        Set("q/a", "1");
        Prepare(
            [If("q/a", CommandFlags.IfPresent), Has(1, "q/", "q0")],
            [Write("q/b", "1"), new TestCommand(CommandKind.Delete, "q/a")]);
        Finish(TransactionDecision.Then);
        Assert.Equal((null, "1"), (Get("q/a"), Get("q/b")));
        Assert.Equal(default, State.Machine.KeyValues.Prepared.Counts);
        Assert.Equal(OutcomeStatus.Applied, Set("q/c", "1").Status);
        Assert.Equal(
            OutcomeStatus.Applied, Do(Transaction("q/d", [Has(2, "q/", "q0")], [Write("q/d", "1")])).Status);
        RequireSame();
    }

    [Fact]
    public void A_range_whose_count_differs_is_held_for_the_other_list()
    {
        Set("q/a", "1");
        Answer answer = Prepare([None("q/", "q0")], [Write("a/x", "1")], [Write("a/y", "1")]);
        Assert.Equal(OutcomeStatus.Applied, answer.Status);
        Assert.False(Vote().Holds);
        Assert.Equal(OutcomeStatus.KeyInTransaction, Do(new TestCommand(CommandKind.Delete, "q/a")).Status);
        Finish(TransactionDecision.Else);
        Assert.Equal((null, "1"), (Get("a/x"), Get("a/y")));
    }

    [Fact]
    public void A_part_that_is_only_held_if_its_range_has_the_keys_holds_nothing_otherwise()
    {
        Set("q/a", "1");
        Answer answer = Prepare([None("q/", "q0")], [Write("a/x", "1")], flags: PrepareFlags.OnlyIfHolds);
        Assert.Equal((long)PrepareRefusal.ConditionFailed, answer.Number);
        Assert.Equal(
            [new(OutcomeStatus.ConditionFailed, 0, 1, null, false)],
            Outcomes(State.LastValue()[PrepareVote.Bytes..]));
        Assert.Equal(OutcomeStatus.Applied, Set("q/b", "1").Status);
    }

    [Fact]
    public void No_key_of_a_held_range_expires_before_the_transaction_takes_effect()
    {
        Set("q/a", "1", ttlMs: 100);
        Prepare([None("q/", "q0")], [Write("a/x", "1")], [Write("a/y", "1")]);
        State.Now += 1_000;
        Do(new TestCommand(CommandKind.ExpireSweep, "") { Flags = CommandFlags.Number, Number = 64 });
        Assert.True(Delays(new TestCommand(CommandKind.Get, "q/a")));
        Finish(TransactionDecision.Else);
        State.Now += 1;
        Assert.Equal((null, "1"), (Get("q/a"), Get("a/y")));
        RequireSame();
    }

    [Fact]
    public void A_key_that_has_expired_before_does_not_come_back_with_a_held_range()
    {
        Set("q/a", "1", ttlMs: 100);
        State.Now += 200;
        Assert.Equal(OutcomeStatus.Applied, Prepare([None("q/", "q0")], [Write("a/x", "1")]).Status);
        Assert.True(Vote().Holds);
        Finish(TransactionDecision.Then);
        Assert.Null(Get("q/a"));
        Assert.Equal(0, CountOf("q/", "q0"));
        RequireSame();
    }

    [Fact]
    public void Keys_of_a_held_range_are_not_evicted()
    {
        Set("q/a", "1");
        Set("r/a", "1");
        Prepare([Has(1, "q/", "q0")], [Write("a/z", "1")]);
        TestCommand evict = new(CommandKind.Evict, "") { Binary = [3, 0, .. "q/a"u8, 3, 0, .. "r/a"u8] };
        State.Follow(evict);
        Follower.Follow(evict);
        Assert.Equal(("1", null), (Get("q/a"), Get("r/a")));
    }

    [Fact]
    public void Held_ranges_come_back_when_a_state_is_loaded()
    {
        Set("q/a", "1", ttlMs: 100);
        Prepare([None("q/", "q0"), None("s/", null)], [Write("a/x", "1")], [Write("a/y", "1")]);
        PreparedCounts before = State.Machine.KeyValues.Prepared.Counts;
        State = State.Reloaded(new StateLimits());
        Follower = Follower.Reloaded(new StateLimits());
        Assert.Equal(before, State.Machine.KeyValues.Prepared.Counts);
        Assert.Equal(OutcomeStatus.KeyInTransaction, Set("q/b", "1").Status);
        Assert.Equal(OutcomeStatus.KeyInTransaction, Set("z", "1").Status);
        Finish(TransactionDecision.Else);
        Assert.Equal(OutcomeStatus.Applied, Set("q/b", "1").Status);
        Assert.Equal(default, State.Machine.KeyValues.Prepared.Counts);
        RequireSame();
    }

    [Fact]
    public void Ranges_with_too_many_rows_are_refused()
    {
        for (int i = 0; i <= RangeCounter.RowsMax; i++)
        {
            State.Set($"q/{i:d6}", "1");
        }

        TestCommand[] both = [None("q/", "q0"), None("q/", "q0")];
        Assert.Equal(
            OutcomeStatus.RangeTooLarge, State.Do(Transaction("a/x", both[..1], [Write("a/x", "1")])).Status);
        Assert.Null(Get("a/x"));
        State.Delete("q/000000");
        Assert.Equal(
            OutcomeStatus.RangeTooLarge, State.Do(Transaction("a/x", both[..1], [Write("a/x", "1")])).Status);
        Follower = new StateDriver();
        Assert.Equal((long)PrepareRefusal.RangeTooLarge, Prepare(both, [Write("a/x", "1")]).Number);
        Assert.Equal(
            OutcomeStatus.ConditionFailed,
            State.Do(Transaction("a/x", [None("q/000002", "q0")], [Write("a/x", "1")])).Status);
    }

    [Fact]
    public void Ranges_with_too_many_keys_that_expire_are_refused()
    {
        for (int i = 0; i <= Limits.TransactionItemsMax; i++)
        {
            State.Set($"q/{i:d6}", "1", ttlMs: 1_000);
        }

        Assert.Equal((long)PrepareRefusal.RangeTooLarge, Prepare([None("q/", "q0")], [Write("a/x", "1")]).Number);
        State.Delete("q/000000");
        Assert.Equal(OutcomeStatus.Applied, Prepare([None("q/", "q0")], [Write("a/x", "1")]).Status);
    }

    [Fact]
    public void A_group_holds_a_bounded_number_of_ranges()
    {
        for (ulong i = 0; i < PreparedTransactions.RangesMax / 64; i++)
        {
            TestCommand[] ranges = [.. Enumerable.Range(0, 64).Select(r => None($"q/{i:d2}{r:d2}", "q0"))];
            Assert.Equal(OutcomeStatus.Applied, Prepare(ranges, [], id: new TransactionId(1, i)).Status);
        }

        Assert.Equal(
            (long)PrepareRefusal.TooMany, Prepare([None("r/", "r0")], [], id: s_other).Number);
        Assert.Equal(OutcomeStatus.Applied, Set("q/0", "1").Status);
        Assert.Equal(OutcomeStatus.KeyInTransaction, Set("q/0000", "1").Status);
        for (ulong i = 0; i < PreparedTransactions.RangesMax / 64; i++)
        {
            Finish(TransactionDecision.Abort, new TransactionId(1, i));
        }

        Assert.Equal(OutcomeStatus.Applied, Set("q/0000", "1").Status);
        Assert.Equal(default, State.Machine.KeyValues.Prepared.Counts);
    }

    [Fact]
    public void Held_ranges_answer_like_a_plain_list_of_them()
    {
        Random random = new(5);
        HeldRanges ranges = new();
        List<(byte[] Start, byte[] End)> model = [];
        for (int i = 0; i < 5_000; i++)
        {
            byte[] first = Bytes(random);
            byte[] second = Bytes(random);
            if (random.Next(2) == 0 && model.Count < 40)
            {
                if (second.Length > 0 && first.AsSpan().SequenceCompareTo(second) >= 0)
                {
                    (first, second) = (second, [.. first, 1]);
                }

                ranges.Hold(first, second);
                model.Add((first, second));
            }
            else if (model.Count > 0)
            {
                int gone = random.Next(model.Count);
                ranges.Release(model[gone].Start, model[gone].End);
                model.RemoveAt(gone);
            }

            byte[] key = Bytes(random);
            byte[] end = random.Next(3) == 0 ? [] : [.. key, 1];
            Assert.Equal(model.Count, ranges.Count);
            Assert.Equal(model.Exists(held => Holds(held, key)), ranges.Contains(key));
            Assert.Equal(
                model.Exists(held => Holds(held, key)
                    || (held.Start.AsSpan().SequenceCompareTo(key) >= 0
                        && (end.Length == 0 || held.Start.AsSpan().SequenceCompareTo(end) < 0))),
                ranges.Overlap(key, end));
        }

        foreach ((byte[] start, byte[] end) in model)
        {
            ranges.Release(start, end);
        }

        Assert.Equal((0, 0L), (ranges.Count, ranges.Bytes));
    }

    private static bool Holds((byte[] Start, byte[] End) held, byte[] key) =>
        key.AsSpan().SequenceCompareTo(held.Start) >= 0
            && (held.End.Length == 0 || key.AsSpan().SequenceCompareTo(held.End) < 0);

    private static byte[] Bytes(Random random)
    {
        byte[] bytes = new byte[random.Next(4)];
        for (int i = 0; i < bytes.Length; i++)
        {
            bytes[i] = (byte)('a' + random.Next(3));
        }

        return bytes;
    }

    private static TestCommand Look(string key) => new(CommandKind.Exists, key);

    /// <summary>How many keys a transaction says that a range has.</summary>
    private long CountOf(string start, string? end)
    {
        Do(Transaction("y", [None(start, end)], [Look("y")]));
        return Outcomes()[0].Number;
    }
}
