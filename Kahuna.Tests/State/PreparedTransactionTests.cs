using System.Text;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.KeyValues;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;
using static Kahuna.Tests.State.TestItems;

namespace Kahuna.Tests.State;

/// <summary>
/// One group's share of a transaction over several partitions: a prepared part holds its keys until a decision, and the
/// first decision counts.
/// </summary>
public sealed class PreparedTransactionTests : TwoPhaseTests
{
    [Fact]
    public void A_prepared_part_changes_nothing_until_it_is_finished()
    {
        Set("a/x", "1");
        Answer answer = Prepare(
            [If("a/x", CommandFlags.IfValue, compared: "1")], [Write("a/x", "2"), Write("a/y", "3")]);
        Assert.Equal(OutcomeStatus.Applied, answer.Status);
        Assert.True(Vote().Holds);
        Assert.Equal(("1", null), (Get("a/x"), Get("a/y")));
        Assert.Equal(new PreparedCounts(1, 2, 0, 0), State.Machine.KeyValues.Prepared.Counts);
        answer = Finish(TransactionDecision.Then);
        Assert.Equal((OutcomeStatus.Applied, 1L), (answer.Status, answer.Number));
        Assert.Equal(
            [new(OutcomeStatus.Applied, 2, 1, null, false), new(OutcomeStatus.Applied, 1, 0, null, false)], Outcomes());
        Assert.Equal(("2", "3"), (Get("a/x"), Get("a/y")));
        Assert.Equal(default, State.Machine.KeyValues.Prepared.Counts);
        Assert.Equal(OutcomeStatus.NotFound, Finish(TransactionDecision.Then).Status);
        RequireSame();
    }

    [Fact]
    public void Aborts_of_unknown_transactions_leave_room_for_those_that_are_prepared()
    {
        for (ulong i = 0; i < DecisionRecords.UnknownAbortsMax; i++)
        {
            Assert.Equal(OutcomeStatus.Applied, Decide(TransactionDecision.Abort, new TransactionId(77, i)).Status);
        }

        Assert.Equal(OutcomeStatus.Busy, Decide(TransactionDecision.Abort, new TransactionId(78, 0)).Status);
        Assert.Equal(OutcomeStatus.Applied, Prepare([], [Write("a/x", "2")], anchor: true).Status);
        Assert.Equal((long)TransactionDecision.Then, Decide(TransactionDecision.Then).Number);
    }

    [Fact]
    public void A_part_votes_on_its_conditions_and_on_both_lists()
    {
        Set("a/text", "no number");
        Answer answer = Prepare(
            [If("a/x", CommandFlags.IfPresent), If("a/text", CommandFlags.IfPresent)],
            [Write("a/y", "1"), Add("a/text", 1)],
            [new TestCommand(CommandKind.Get, "a/text")]);
        Assert.Equal(OutcomeStatus.Applied, answer.Status);
        PrepareVote vote = Vote();
        Assert.False(vote.Holds);
        Assert.Equal((OutcomeStatus.NotAnInteger, 1u), (vote.Then.Status, vote.Then.Operation));
        Assert.Equal((OutcomeStatus.Applied, 9u), (vote.Else.Status, vote.Else.ValueBytes));
        Assert.Equal(
            [new(OutcomeStatus.ConditionFailed, 0, 0, null, false), new(OutcomeStatus.Applied, 1, 0, null, false)],
            Outcomes(State.LastValue()[PrepareVote.Bytes..]));
        Finish(TransactionDecision.Else);
        Assert.Equal([new(OutcomeStatus.Found, 1, -1, "no number", false)], Outcomes());
        Assert.Null(Get("a/y"));
    }

    [Fact]
    public void A_part_that_is_only_held_if_its_conditions_hold_holds_nothing_otherwise()
    {
        Answer answer = Prepare(
            [If("a/x", CommandFlags.IfPresent)], [Write("a/x", "1")], flags: PrepareFlags.OnlyIfHolds);
        Assert.Equal(
            (OutcomeStatus.ConditionFailed, (long)PrepareRefusal.ConditionFailed), (answer.Status, answer.Number));
        Assert.False(Vote().Holds);
        Assert.Equal(default, State.Machine.KeyValues.Prepared.Counts);
        Assert.Equal(OutcomeStatus.Applied, Set("a/x", "1").Status);
    }

    [Fact]
    public void Decisions_are_forgotten_together_and_those_under_way_stay()
    {
        TransactionId[] ids = [.. Enumerable.Range(1, 4).Select(static i => new TransactionId(7, (ulong)i))];
        foreach (TransactionId id in ids[..3])
        {
            Prepare([], [Write($"a/{id.Low}", "1")], anchor: true, id: id);
        }

        Decide(TransactionDecision.Then, ids[0]);
        Decide(TransactionDecision.Abort, ids[2]);
        Assert.Equal(new PreparedCounts(1, 1, 1, 2), State.Machine.KeyValues.Prepared.Counts);
        Assert.Equal(OutcomeStatus.Applied, Forget(ids).Status);
        Assert.Equal(new PreparedCounts(1, 1, 1, 0), State.Machine.KeyValues.Prepared.Counts);
        Assert.Equal(OutcomeStatus.NotFound, Forget(ids).Status);
        RequireSame();
    }

    [Fact]
    public void The_first_decision_counts_and_carries_out_the_anchors_part()
    {
        Prepare([], [Write("a/x", "1")], anchor: true);
        Assert.Equal(new PreparedCounts(1, 1, 1, 0), State.Machine.KeyValues.Prepared.Counts);
        Assert.Equal(OutcomeStatus.NotFound, Forget().Status);
        Answer answer = Decide(TransactionDecision.Then);
        Assert.Equal((OutcomeStatus.Applied, (long)TransactionDecision.Then), (answer.Status, answer.Number));
        Assert.Equal([new(OutcomeStatus.Applied, 1, 0, null, false)], Outcomes());
        Assert.Equal("1", Get("a/x"));
        answer = Decide(TransactionDecision.Abort);
        Assert.Equal(((long)TransactionDecision.Then, null), (answer.Number, answer.Value));
        Assert.Equal(new PreparedCounts(0, 0, 0, 1), State.Machine.KeyValues.Prepared.Counts);
        Assert.Equal(OutcomeStatus.Applied, Forget().Status);
        Assert.Equal(default, State.Machine.KeyValues.Prepared.Counts);
        RequireSame();
    }

    [Fact]
    public void A_transaction_that_is_not_known_is_aborted_and_a_late_part_of_its_anchor_is_refused()
    {
        Answer answer = Decide(TransactionDecision.Then);
        Assert.Equal((long)TransactionDecision.Abort, answer.Number);
        Assert.Equal(default, State.Machine.KeyValues.Prepared.Counts);
        answer = Decide(TransactionDecision.Abort);
        Assert.Equal((long)TransactionDecision.Abort, answer.Number);
        Assert.Equal(new PreparedCounts(0, 0, 0, 1), State.Machine.KeyValues.Prepared.Counts);
        answer = Prepare([], [Write("a/x", "1")], anchor: true);
        Assert.Equal((OutcomeStatus.ConditionFailed, (long)PrepareRefusal.Over), (answer.Status, answer.Number));
        Assert.Equal((long)TransactionDecision.Abort, Decide(TransactionDecision.Then).Number);
        Assert.Null(Get("a/x"));
    }

    [Fact]
    public void An_anchor_without_keys_keeps_the_decision()
    {
        Answer answer = Prepare([], [], anchor: true);
        Assert.Equal(OutcomeStatus.Applied, answer.Status);
        Assert.Equal(new PreparedCounts(0, 0, 1, 0), State.Machine.KeyValues.Prepared.Counts);
        answer = Decide(TransactionDecision.Else);
        Assert.Equal(((long)TransactionDecision.Else, null), (answer.Number, answer.Value));
    }

    [Fact]
    public void Parts_and_decisions_are_there_after_a_restart()
    {
        Set("a/ttl", "1", ttlMs: 10_000);
        Prepare([If("a/ttl", CommandFlags.IfPresent)], [Write("a/x", "1")], anchor: true);
        TransactionId other = new(7, 8);
        Prepare([], [Write("a/y", "1")], anchor: true, id: other, anchorKey: "a/y");
        Decide(TransactionDecision.Then, other);
        PreparedCounts before = State.Machine.KeyValues.Prepared.Counts;
        Assert.Equal(new PreparedCounts(1, 2, 1, 1), before);
        State = State.Reloaded(new StateLimits());
        Follower = Follower.Reloaded(new StateLimits());
        Assert.Equal(before, State.Machine.KeyValues.Prepared.Counts);
        Assert.Equal(State.Machine.Digest, State.Machine.RecomputeDigest());
        Assert.Equal(OutcomeStatus.KeyInTransaction, Set("a/x", "other").Status);
        Assert.True(Delays(new TestCommand(CommandKind.Get, "a/ttl")));
        Assert.Equal((long)TransactionDecision.Then, Decide(TransactionDecision.Then).Number);
        Assert.Equal(("1", "1"), (Get("a/x"), Get("a/y")));
        Assert.Equal((long)TransactionDecision.Then, Decide(TransactionDecision.Abort, other).Number);
        RequireSame();
    }

    [Fact]
    public void Late_transactions_are_told_with_what_settles_them()
    {
        Prepare([], [Write("a/x", "1")], anchor: true);
        Prepare([], [Write("b/x", "1")], id: new TransactionId(7, 8), anchorKey: "z/z");
        OverdueTransactions prepared = State.Machine.KeyValues.Prepared.Overdue;
        ClusterTime late = new(State.Now + 5_000);
        Assert.False(prepared.HasLate(late - 1));
        Assert.True(prepared.HasLate(late));
        List<LateTransaction> told = [];
        prepared.TakeLate(late, 0, 10, told);
        Assert.Equal(3, told.Count);
        LateTransaction record = Assert.Single(told, static one => one.IsRecord);
        Assert.Equal((Id, TransactionDecision.Pending), (record.Id, record.Decision));
        Assert.Equal([(Durability.Persistent, "a/x"), (Durability.Ephemeral, "e/x")],
            record.Participants.Select(static one => (one.Durability, Encoding.UTF8.GetString(one.Key))));
        LateTransaction part = Assert.Single(told, static one => one is { IsRecord: false } && one.Id != Id);
        Assert.Equal(("b/x", "z/z"), (Encoding.UTF8.GetString(part.PartKey), Encoding.UTF8.GetString(part.AnchorKey)));
        told.Clear();
        prepared.TakeLate(late, 2, 10, told);
        Assert.Single(told);

        // A decision is remembered for longer.
        Decide(TransactionDecision.Then);
        Finish(TransactionDecision.Abort, new TransactionId(7, 8));
        Assert.False(prepared.HasLate(new ClusterTime(State.Now + DecisionRecords.RecordMs - 1)));
        Assert.True(prepared.HasLate(new ClusterTime(State.Now + DecisionRecords.RecordMs)));
    }

    [Fact]
    public void What_a_group_holds_is_bounded()
    {
        for (int i = 0; i < PreparedTransactions.PartsMax; i++)
        {
            string key = $"a/{i}";
            Assert.Equal(
                OutcomeStatus.Applied, Prepare([], [Write(key, "1")], id: new TransactionId(5, (ulong)i)).Status);
        }

        Answer answer = Prepare([], [Write("b/x", "1")]);
        Assert.Equal((OutcomeStatus.ConditionFailed, (long)PrepareRefusal.TooMany), (answer.Status, answer.Number));
        Finish(TransactionDecision.Abort, new TransactionId(5, 0));
        Assert.Equal(OutcomeStatus.Applied, Prepare([], [Write("b/x", "1")]).Status);
        RequireSame();
    }

    [Fact]
    public void The_changes_of_a_part_are_one_transaction_of_the_watches()
    {
        ChangeMirror mirror = new();
        State.Machine.TellChanges(mirror, new GroupId(1), default);
        Prepare([], [Write("a/x", "1"), Write("a/y", "1")]);
        Assert.Empty(mirror.Told);
        Finish(TransactionDecision.Then);
        Assert.Equal(["a/x", "a/y"], mirror.Told.Select(static told => told.Key));
        Assert.Single(mirror.Told.Select(static told => told.Position.Index).Distinct());
    }
}
