using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using static Kahuna.Tests.State.TestItems;

namespace Kahuna.Tests.State;

/// <summary>
/// Keys that a prepared transaction holds: who may read and write them, and that time passes them over.
/// </summary>
public sealed class HeldKeyTests : TwoPhaseTests
{
    [Fact]
    public void Held_keys_are_not_written_by_others()
    {
        Set("a/read", "1");
        Prepare([If("a/read", CommandFlags.IfPresent)], [Write("a/x", "1")]);
        foreach (string key in new[] { "a/read", "a/x" })
        {
            TestCommand[] writes =
            [
                Write(key, "other"),
                new TestCommand(CommandKind.Delete, key),
                new TestCommand(CommandKind.Extend, key) { Flags = CommandFlags.Ttl, TtlMs = 5 },
                Add(key, 1),
                Transaction("a/z", [Write("a/z", "1"), Write(key, "1")]),
                Range(CommandKind.KeyRangeDelete, "a/", "a0"),
            ];
            foreach (TestCommand write in writes)
            {
                Assert.Equal(OutcomeStatus.KeyInTransaction, Do(write).Status);
            }
        }

        Assert.Equal(OutcomeStatus.Applied, Do(Transaction("a/z", [Write("a/z", "1")])).Status);
        Assert.Equal(
            OutcomeStatus.Applied, Do(Transaction("a/z", [new TestCommand(CommandKind.Get, "a/read")])).Status);
        Assert.Equal(
            OutcomeStatus.KeyInTransaction, Do(Transaction("a/z", [new TestCommand(CommandKind.Get, "a/x")])).Status);
        Assert.Equal(OutcomeStatus.Applied, Do(Range(CommandKind.KeyRangeDelete, "b/", "b0")).Status);
        Finish(TransactionDecision.Abort);
        Assert.Equal(OutcomeStatus.Applied, Set("a/x", "other").Status);
        RequireSame();
    }

    [Fact]
    public void A_write_that_was_refused_may_come_again_under_its_number()
    {
        Prepare([], [Write("a/x", "1")]);
        Assert.Equal(OutcomeStatus.KeyInTransaction, Numbered(Write("a/x", "2"), 1).Status);
        Finish(TransactionDecision.Then);
        Answer again = Numbered(Write("a/x", "2"), 1);
        Assert.Equal((OutcomeStatus.Applied, 2L), (again.Status, again.Revision));
    }

    [Fact]
    public void Reads_of_keys_that_are_to_be_written_have_to_wait_and_others_do_not()
    {
        Set("a/read", "1");
        Prepare([If("a/read", CommandFlags.IfPresent)], [Write("a/x", "1"), new TestCommand(CommandKind.Get, "a/g")]);
        Assert.True(Delays(new TestCommand(CommandKind.Get, "a/x")));
        Assert.True(Delays(new TestCommand(CommandKind.Exists, "a/x")));
        Assert.False(Delays(new TestCommand(CommandKind.Get, "a/read")));
        Assert.False(Delays(new TestCommand(CommandKind.Get, "a/g")));
        Assert.True(Delays(GetMany("a/read", "a/x")));
        Assert.False(Delays(GetMany("a/read", "a/g")));
        Assert.True(Delays(Range(CommandKind.KeyRange, "a/", "a0")));
        Assert.True(Delays(Range(CommandKind.KeyRange, "a/", null)));
        Assert.False(Delays(Range(CommandKind.KeyRange, "a/", "a/x")));
        Assert.False(Delays(Range(CommandKind.KeyRange, "a/xx", null)));
        Assert.True(Delays(Range(CommandKind.CutOpen, "", null)));
        Finish(TransactionDecision.Then);
        Assert.False(Delays(new TestCommand(CommandKind.Get, "a/x")));
        Assert.False(Delays(Range(CommandKind.KeyRange, "", null)));
    }

    [Fact]
    public void Transactions_share_keys_that_they_only_read()
    {
        Set("a/read", "1");
        Assert.Equal(
            OutcomeStatus.Applied, Prepare([If("a/read", CommandFlags.IfPresent)], [Write("a/x", "1")]).Status);
        TransactionId other = new(7, 8);
        Answer answer = Prepare([If("a/read", CommandFlags.IfPresent)], [Write("a/x", "2")], id: other);
        Assert.Equal((OutcomeStatus.ConditionFailed, (long)PrepareRefusal.KeyHeld), (answer.Status, answer.Number));
        answer = Prepare([If("a/read", CommandFlags.IfPresent)], [Write("a/y", "2")], id: other);
        Assert.Equal(OutcomeStatus.Applied, answer.Status);
        Finish(TransactionDecision.Then);
        Assert.Equal(OutcomeStatus.KeyInTransaction, Set("a/read", "2").Status);
        answer = Prepare([], [Write("a/read", "3")], id: new TransactionId(9, 9));
        Assert.Equal((long)PrepareRefusal.KeyHeld, answer.Number);
        Finish(TransactionDecision.Then, other);
        Assert.Equal(("1", "2"), (Get("a/x"), Get("a/y")));
        Assert.Equal(OutcomeStatus.Applied, Set("a/read", "2").Status);
    }

    [Fact]
    public void A_held_key_does_not_expire_before_the_transaction_takes_effect()
    {
        Set("a/n", "5", ttlMs: 100);
        Set("a/gone", "5", ttlMs: 100);
        Prepare([If("a/gone", CommandFlags.IfPresent)], [Add("a/n", 1)]);
        State.Now += 1_000;
        Do(new TestCommand(CommandKind.ExpireSweep, "") { Flags = CommandFlags.Number, Number = 64 });
        Assert.True(Delays(new TestCommand(CommandKind.Get, "a/gone")));
        Finish(TransactionDecision.Then);
        Assert.Equal([new(OutcomeStatus.Applied, 2, 6, null, false)], Outcomes());
        State.Now += 1;
        Assert.Equal((null, null), (Get("a/n"), Get("a/gone")));
        RequireSame();
    }

    [Fact]
    public void A_held_key_that_is_let_go_keeps_its_time_to_live()
    {
        Set("a/n", "5", ttlMs: 5_000);
        Prepare([], [Write("a/n", "6")]);
        State.Now += 1_000;
        Finish(TransactionDecision.Abort);
        Answer read = State.Get("a/n");
        Assert.Equal(("5", 4_000L), (read.Value, read.Number));
    }

    [Fact]
    public void Held_keys_are_not_evicted()
    {
        Set("a/x", "1");
        Set("a/y", "1");
        Prepare([If("a/x", CommandFlags.IfPresent)], [Write("a/z", "1")]);
        TestCommand evict = new(CommandKind.Evict, "") { Binary = [3, 0, .. "a/x"u8, 3, 0, .. "a/y"u8] };
        State.Follow(evict);
        Follower.Follow(evict);
        Assert.Equal(("1", null), (Get("a/x"), Get("a/y")));
        Finish(TransactionDecision.Then);
        Assert.Equal("1", Get("a/z"));
    }
}
