using static Kahuna.Tests.Linearizability.Recorded;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Histories whose verdict is known: the faults that a coordination server must not have, each next to a twin that is
/// fine.
/// </summary>
public sealed class KnownHistoryTests
{
    private static readonly CheckerOptions s_strict = new() { TtlSlack = TimeSpan.Zero };

    [Fact]
    public void A_read_after_a_write_sees_it()
    {
        Good(Set(1, 0, 10, "a", 1), Get(2, 20, 30, "a", 1));
        Good(Set(1, 0, 10, "a"), Set(1, 20, 40, "b"), Get(2, 30, 35, "a"), Get(3, 36, 39, "b"));
        Bad(Set(1, 0, 10, "a"), Set(1, 20, 30, "b"), Get(2, 40, 50, "a"));
    }

    [Fact]
    public void Stale_read_after_another_read_saw_the_new_value() =>
        Bad(Set(1, 0, 10, "a"), Set(1, 20, 60, "b"), Get(2, 30, 35, "b"), Get(3, 40, 45, "a"));

    [Fact]
    public void Events_of_one_moment_are_concurrent()
    {
        Good(Set(1, 0, 10, "a"), GetNothing(2, 10, 20));
        Bad(Set(1, 0, 10, "a"), GetNothing(2, 11, 20));
    }

    [Fact]
    public void Lost_update()
    {
        Good(Set(1, 0, 10, "0", 1), Increment(1, 20, 30, 1, 2), Increment(2, 20, 30, 2, 3), Get(3, 40, 50, "2", 3));
        Bad(Set(1, 0, 10, "0", 1), Increment(1, 20, 30, 1), Increment(2, 20, 30, 1), Get(3, 40, 50, "1"));
        Bad(Set(1, 0, 10, "a", 1), Set(1, 20, 30, "b", 2).IfRevision(1), Set(2, 20, 30, "c", 2).IfRevision(1));
    }

    [Fact]
    public void Split_brain()
    {
        // Two leaders, each with its own writes: both sides are fine by themselves.
        Bad(
            Set(1, 0, 10, "a", 1),
            Set(2, 20, 30, "b", 2),
            Get(2, 40, 50, "b", 2),
            Set(3, 20, 30, "c", 2),
            Get(3, 40, 50, "c", 2));
        Bad(Set(1, 0, 10, "b").IfAbsent(), Set(2, 0, 10, "c").IfAbsent());
        Good(Set(1, 0, 10, "b", 1).IfAbsent(), Set(2, 0, 10, "c").IfAbsent().Refused(1));
    }

    [Fact]
    public void Duplicate_apply()
    {
        Bad(Increment(1, 0, 10, 1, 1), Get(2, 20, 30, "2", 2));
        Bad(Set(1, 0, 10, "a", 1), Set(2, 20, 30, "b", 2), Get(3, 40, 50, "a", 3));
        Good(Set(1, 0, 10, "a", 1), Set(2, 20, 30, "b", 2), Set(4, 31, 32, "a").Unanswered(), Get(3, 40, 50, "a", 3));
    }

    [Fact]
    public void Unknown_increment_counts_once_or_not_at_all()
    {
        HistoryOperation unknown = Increment(1, 20, 30, 0).Unanswered();
        Good(Increment(2, 0, 10, 1, 1), unknown, Get(2, 40, 50, "1", 1));
        Good(Increment(2, 0, 10, 1, 1), unknown, Get(2, 40, 50, "2", 2));
        Good(Increment(2, 0, 10, 1, 1), unknown, Get(2, 40, 50, "1", 1), Get(2, 60, 70, "2", 2));
        Bad(Increment(2, 0, 10, 1, 1), unknown, Get(2, 40, 50, "3", 3));
        Bad(Increment(2, 0, 10, 1, 1), unknown, Get(2, 40, 50, "2", 2), Get(2, 60, 70, "1", 1));
        Bad(Increment(2, 0, 10, 1, 1), unknown, Get(3, 15, 18, "2", 2));
        Bad(Increment(2, 0, 10, 1, 1), Increment(1, 20, 30, 0).Failed(), Get(2, 40, 50, "2", 2));
    }

    [Fact]
    public void Unknown_writes_may_come_late_but_not_twice()
    {
        HistoryOperation lost = Set(9, 5, 6, "x").Unanswered();
        Good(lost, Set(1, 10, 20, "a"), Get(1, 30, 40, "a"), Get(1, 50, 60, "x"));
        Bad(lost, Set(1, 10, 20, "a"), Get(1, 30, 40, "x"), Set(1, 50, 60, "b"), Get(1, 70, 80, "x"));
        Good(
            lost,
            Set(8, 5, 6, "x").Unanswered(),
            Set(1, 10, 20, "a"),
            Get(1, 30, 40, "x"),
            Set(1, 50, 60, "b"),
            Get(1, 70, 80, "x"));
    }

    [Fact]
    public void Resurrected_key()
    {
        Bad(Set(1, 0, 10, "a", 1), Delete(1, 20, 30, 2), Get(2, 40, 50, "a"));
        Bad(Set(1, 0, 10, "a", 1), Delete(1, 20, 30, 2), GetNothing(2, 40, 50, 2), Set(2, 60, 70, "b", 1));
        Good(Set(1, 0, 10, "a", 1), Delete(1, 20, 30, 2), GetNothing(2, 40, 50, 2), Set(2, 60, 70, "b", 3));
        Bad(Set(1, 0, 10, "a", 1).For(5), GetNothing(2, 40, 50, 2), Get(2, 60, 70, "a", 1));
    }

    [Fact]
    public void Revision_does_not_go_back()
    {
        Bad(Set(1, 0, 10, "a", 1), Set(1, 20, 30, "b", 2), Set(1, 40, 50, "c", 2));
        Bad(Get(1, 0, 10, "a", 2), Set(2, 0, 90, "a"), Set(3, 0, 90, "a"), Set(4, 0, 90, "a"), Get(1, 20, 30, "a", 1));
    }

    [Fact]
    public void A_key_that_is_not_there_may_have_been_forgotten()
    {
        Good(Set(1, 0, 10, "a", 2));
        Good(
            Set(1, 0, 10, "a", 1),
            Delete(1, 20, 30, 2),
            GetNothing(1, 40, 50, 0),
            Set(1, 60, 70, "b", 9),
            Get(1, 80, 90, "b", 9));
        Bad(Set(1, 0, 10, "a", 5), Delete(1, 20, 30, 6), GetNothing(1, 40, 50, 0), Set(1, 60, 70, "b", 6));
        Bad(Set(1, 0, 10, "a", 1), Set(1, 20, 30, "b", 3));
        Bad(Set(1, 0, 10, "a", 1), GetNothing(1, 20, 30, 0));
        Bad(Set(1, 0, 10, "a", 4), Delete(1, 20, 30, 6));

        // Of two deletions without an answer the one that names a revision is not as good as the other.
        Good(
            Delete(1, 0, 10).IfRevision(1).Unanswered(),
            Set(2, 0, 10, "a").Unanswered(),
            Delete(3, 0, 10).Unanswered(),
            GetNothing(4, 20, 30, 4));
    }

    [Fact]
    public void Condition_that_passed_although_it_could_not()
    {
        Bad(Set(1, 0, 10, "a"), Set(2, 20, 30, "b").IfAbsent());
        Bad(Set(2, 20, 30, "b").IfPresent());
        Bad(Set(1, 0, 10, "a"), Set(2, 20, 30, "b").IfValue("c"));
        Bad(Set(1, 0, 10, null), Set(2, 20, 30, "b").IfValue(""));
        Good(Set(1, 0, 10, null), Set(2, 20, 30, "b").IfValue(null));
        Bad(Set(1, 0, 10, "a", 1), Delete(2, 20, 30).IfRevision(2));
        Good(Set(1, 0, 10, "a", 1), Delete(2, 20, 30).IfRevision(2), Set(3, 15, 25, "a", 2));
        Bad(Delete(1, 0, 10));
        Bad(Extend(1, 0, 10, 100));
    }

    [Fact]
    public void Doubled_creation()
    {
        HistoryOperation first = Set(1, 0, 10, "a", 1).IfAbsent();

        // One after the other, at the same time, at the same revision, at one that a forgotten key would have, or
        // without a word of revisions.
        Bad(first, Set(2, 20, 30, "b", 2).IfAbsent());
        Bad(first, Set(2, 5, 15, "b", 2).IfAbsent());
        Bad(first, Set(2, 20, 30, "b", 1).IfAbsent());
        Bad(first, Set(2, 20, 30, "b", 9).IfAbsent());
        Bad(Set(1, 0, 10, "a").IfAbsent(), Set(2, 20, 30, "b").IfAbsent());
        Bad(Increment(1, 0, 10, 1, 1), Set(2, 20, 30, "b", 2).IfAbsent());

        // What did not happen, came later or found nothing does not make room; nor does a time to live that goes on.
        Bad(first, Delete(3, 12, 18).Failed(), Set(2, 20, 30, "b", 3).IfAbsent());
        Bad(first, Delete(3, 12, 18).Refused(), Set(2, 20, 30, "b", 3).IfAbsent());
        Bad(first, Set(2, 20, 30, "b", 2).IfAbsent(), Delete(3, 40, 50, 3));
        Bad(first.For(5_000), Set(2, 20, 30, "b", 2).IfAbsent());
        Bad(first, Set(2, 20, 30, "b", 2).IfAbsent(), Get(3, 40, 50, "b", 2));

        // A deletion between them makes room for one creation, and one that may have happened does.
        Bad(first, Delete(3, 12, 18, 2), Set(2, 20, 30, "b", 3).IfAbsent(), Set(3, 40, 50, "c", 4).IfAbsent());
        Bad(
            first,
            Delete(3, 12, 18).Unanswered(),
            Set(2, 20, 30, "b", 3).IfAbsent(),
            Set(4, 40, 50, "c", 5).IfAbsent());
        Bad(first, Delete(3, 12, 18).Unanswered(), Set(2, 20, 30, "b", 2).IfAbsent());
        Good(first, Delete(3, 12, 18, 2), Set(2, 20, 30, "b", 3).IfAbsent());
        Good(first, Delete(3, 12, 18).Unanswered(), Set(2, 20, 30, "b", 3).IfAbsent());
        Good(first.For(5), Set(2, 20, 30, "b", 3).IfAbsent());
    }

    [Fact]
    public void Condition_that_failed_although_it_held()
    {
        Bad(Set(1, 0, 10, "a").IfAbsent().Refused());
        Bad(Set(1, 0, 10, "a", 1), Set(2, 20, 30, "b").IfRevision(1).Refused());
        Bad(Set(1, 0, 10, "a", 1), Delete(2, 20, 30).Refused());
    }

    [Fact]
    public void Refusals_tell_the_current_revision_and_0_without_a_key()
    {
        Good(
            Set(1, 0, 10, "a", 1),
            Set(1, 20, 30, "b").IfAbsent().Refused(1),
            Delete(1, 40, 50, 2),
            Set(1, 60, 70, "b").IfPresent().Refused(0));
        Bad(Set(1, 0, 10, "a", 1), Delete(1, 40, 50, 2), Set(1, 60, 70, "b").IfPresent().Refused(2));
        Good(Set(1, 0, 10, "a", 1), Delete(1, 40, 50, 2), Delete(1, 60, 70).Refused(0), GetNothing(1, 80, 90, 2));
        Bad(Set(1, 0, 10, "a", 1), Delete(1, 40, 50, 2), Delete(1, 60, 70).Refused(2));
    }

    [Fact]
    public void Increment_of_what_is_no_integer_changes_nothing()
    {
        Good(Set(1, 0, 10, "a", 1), Increment(1, 20, 30, 0).Refused(1), Get(1, 40, 50, "a", 1));
        Good(Set(1, 0, 10, "01", 1), Increment(1, 20, 30, 0).Refused(1));
        Bad(Set(1, 0, 10, "a", 1), Increment(1, 20, 30, 1, 2));
        Good(Set(1, 0, 10, "9223372036854775807", 1), Increment(1, 20, 30, 0).Refused(1));
        Good(Delete(1, 0, 5).Refused(0), Increment(1, 20, 30, -3, 1, by: -3), Get(1, 40, 50, "-3", 1));
    }

    [Fact]
    public void Early_expiry()
    {
        Good(Set(1, 0, 10, "a", 1).For(100), GetNothing(1, 90, 100, 2));
        Bad(Set(1, 0, 10, "a", 1).For(100), GetNothing(1, 90, 99, 2));
        Bad(Set(1, 0, 10, "a", 1).For(100), Extend(1, 20, 30, 200), GetNothing(1, 110, 219, 2));
        Good(Set(1, 0, 10, "a", 1).For(100), Extend(1, 20, 30, 200), GetNothing(1, 110, 220, 2));
        Bad(Set(1, 0, 10, "a", 1).For(100), Extend(1, 20, 30, 0), GetNothing(1, 110, 900, 2));
        Bad(Set(1, 0, 10, "a", 1).For(100), Set(1, 20, 30, "b", 2), GetNothing(1, 110, 900, 3));

        // An expiry that one read saw is over for what comes later, so the others had to return after it.
        Bad(Set(1, 0, 10, "a", 1).For(100), GetNothing(2, 20, 200, 2), GetNothing(3, 30, 90, 2));
        Bad(Set(1, 0, 10, "a", 1).For(100), Set(2, 20, 200, "b", 3), Get(3, 30, 90, "b", 3));
    }

    [Fact]
    public void Slack_allows_an_expiry_that_is_a_little_early()
    {
        HistoryOperation[] history = [Set(1, 0, 10, "a", 1).For(100), GetNothing(1, 90, 98, 2)];
        Assert.Equal(Verdict.Linearizable, Check(s_strict with { TtlSlack = TimeSpan.FromMilliseconds(2) }, history));
        Assert.Equal(
            Verdict.NotLinearizable, Check(s_strict with { TtlSlack = TimeSpan.FromMilliseconds(1) }, history));
    }

    [Fact]
    public void Late_expiry_is_allowed_unless_it_is_bounded()
    {
        HistoryOperation[] history = [Set(1, 0, 10, "a", 1).For(100), Get(1, 130, 140, "a", 1)];
        Assert.Equal(Verdict.Linearizable, Check(s_strict, history));
        Assert.Equal(
            Verdict.Linearizable, Check(s_strict with { TtlLatenessMax = TimeSpan.FromMilliseconds(20) }, history));
        Assert.Equal(
            Verdict.NotLinearizable, Check(s_strict with { TtlLatenessMax = TimeSpan.FromMilliseconds(19) }, history));
    }

    [Fact]
    public void Expiry_counts_as_one_revision()
    {
        Good(Set(1, 0, 10, "a", 1).For(10), Set(1, 50, 60, "b", 3));
        Good(Set(1, 0, 10, "a", 1).For(10), Set(1, 50, 60, "b", 2));
        Good(Set(1, 0, 10, "a", 1).For(10), Set(1, 50, 60, "b", 4));
        Bad(Set(1, 0, 10, "a", 1), Set(1, 50, 60, "b", 3));
    }

    [Fact]
    public void Increment_keeps_the_time_to_live_and_set_removes_it()
    {
        Good(Set(1, 0, 10, "1", 1).For(100), Increment(1, 20, 30, 2, 2), GetNothing(1, 150, 160, 3));
        Good(Set(1, 0, 10, "1", 1).For(100), Increment(1, 150, 160, 1, 3));
        Bad(Set(1, 0, 10, "1", 1).For(100), Increment(1, 150, 160, 1, 3), GetNothing(1, 300, 310));
    }

    [Fact]
    public void What_was_not_recorded_is_not_checked()
    {
        HistoryOperation blank = Set(2, 20, 30, "b").IfAbsent() with { Result = OperationResult.Unconstrained };
        Good(Set(1, 0, 10, "a"), blank, Get(1, 40, 50, "a"));
        Bad(Set(1, 0, 10, "a"), blank, Get(1, 40, 50, "b"));
    }

    [Fact]
    public void Keys_are_told_apart()
    {
        HistoryVerdict verdict = LinearizabilityChecker.Check(
            [
                Set(1, 0, 10, "a", 1),
                Set(1, 20, 30, "b", 1) with { Key = "other" },
                Get(2, 40, 50, "b") with { Key = "third" },
            ]);
        Assert.Equal(
            [("k", Verdict.Linearizable), ("other", Verdict.Linearizable), ("third", Verdict.NotLinearizable)],
            verdict.Keys.Select(key => (key.Key, key.Verdict)));
        Assert.Equal(Verdict.NotLinearizable, verdict.Verdict);
    }

    [Fact]
    public void Search_that_reaches_its_limit_has_no_verdict()
    {
        // Each choice of the increments has a sum of its own, and none is the one that was read.
        List<HistoryOperation> history =
        [
            .. Enumerable.Range(0, 12)
                .Select(i => Increment(i, 0, 10, 0, by: 1 << i) with { Result = OperationResult.Unconstrained }),
            Get(1, 20, 30, "4096"),
        ];
        HistoryVerdict verdict = LinearizabilityChecker.Check(history, new CheckerOptions { StatesMax = 1000 });
        Assert.Equal(Verdict.Undecided, verdict.Verdict);
        Assert.Contains("key k: undecided after 1001 states", verdict.Findings(), StringComparison.Ordinal);
    }

    private static void Good(params HistoryOperation[] history) => Verdicts(Verdict.Linearizable, history);

    private static void Bad(params HistoryOperation[] history) => Verdicts(Verdict.NotLinearizable, history);

    private static void Verdicts(Verdict expected, HistoryOperation[] history)
    {
        Assert.Equal(expected, Check(s_strict, history));
        Assert.Equal(expected == Verdict.Linearizable, BruteForce.IsLinearizable(history, s_strict));
    }

    private static Verdict Check(CheckerOptions options, params HistoryOperation[] history) =>
        LinearizabilityChecker.Check(history, options).Verdict;
}
