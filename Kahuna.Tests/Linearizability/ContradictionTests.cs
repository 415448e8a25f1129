using static Kahuna.Tests.Linearizability.Recorded;

namespace Kahuna.Tests.Linearizability;

/// <summary>Of a failing history the few operations are shown that are to blame.</summary>
public sealed class ContradictionTests
{
    [Fact]
    public void Stale_read_among_many_operations()
    {
        List<HistoryOperation> history = [];
        for (int i = 0; i < 100; i++)
        {
            history.Add(Set(i % 3, 10 * i, (10 * i) + 15, $"v{i}"));
            history.Add(Get(3 + (i % 3), (10 * i) + 20, (10 * i) + 25, $"v{i}"));
        }

        HistoryOperation stale = Get(9, 1100, 1110, "v42");
        Contradiction found = Find(
            [.. history, stale, Get(9, 1200, 1210, "v99"), Delete(9, 1300, 1310).Refused().Failed()]);
        Assert.True(found.IsMinimal);
        Assert.Contains(stale, found.Operations);
        Assert.InRange(found.Operations.Count, 2, 4);
        Assert.Equal(202, found.Operations.Count + found.LeftOut);
    }

    [Fact]
    public void Revision_that_two_writes_got()
    {
        HistoryOperation one = Set(1, 20, 30, "b", 2);
        HistoryOperation other = Set(2, 25, 35, "c", 2);
        Contradiction found = Find(
            [Set(1, 0, 10, "a", 1), one, other, Get(3, 40, 50, "c", 2), Set(4, 41, 45, "d").Unanswered()]);
        Assert.Equal([one, other], found.Operations);
        Assert.Equal(3, found.LeftOut);
    }

    [Fact]
    public void Value_that_nobody_wrote()
    {
        HistoryOperation read = Get(2, 20, 30, "b");
        KeyVerdict verdict = LinearizabilityChecker.Check([Set(1, 0, 10, "a"), read, Set(1, 40, 50, "b")]).Keys[0];
        Assert.Equal([read], verdict.Contradiction!.Operations);
        Assert.StartsWith(
            "key k: not linearizable; this answer has no explanation, whatever its other 2 did:\n{\"process\":2,",
            new HistoryVerdict([verdict]).Findings(),
            StringComparison.Ordinal);
    }

    /// <summary>What is shown fails for one reason each: with any answer forgotten it would not fail.</summary>
    [Fact]
    public void Nothing_can_be_missed()
    {
        CheckerOptions options = new() { TtlSlack = TimeSpan.Zero };
        RandomHistory.Shape shape = new() { Operations = 20, Processes = 4 };
        int failing = 0;
        for (int seed = 0; seed < 200; seed++)
        {
            List<HistoryOperation> history = Perturbation.Apply(
                new Random(seed), new RandomHistory(seed, shape).Create());
            if (LinearizabilityChecker.Check(history, options).Keys[0].Contradiction is not { } found)
            {
                continue;
            }

            failing++;
            Assert.True(found.IsMinimal);
            List<HistoryOperation> weakest =
            [
                .. history.Where(operation => operation.Outcome != HistoryOutcome.Fail).Select(
                    operation => found.Operations.Contains(operation) ? operation : operation.WithUnknownOutcome()),
            ];
            Assert.Equal(
                Verdict.NotLinearizable, LinearizabilityChecker.Search(weakest, options, options.StatesMax, out _));
            foreach (HistoryOperation blamed in found.Operations)
            {
                IEnumerable<HistoryOperation> without = weakest.Where(
                    operation => operation.CallNs <= found.Operations.Max(one => one.ReturnNs))
                    .Select(operation => operation == blamed ? operation.WithUnknownOutcome() : operation);
                Assert.Equal(
                    Verdict.Linearizable, LinearizabilityChecker.Search(without, options, options.StatesMax, out _));
            }
        }

        Assert.True(failing > 50, $"{failing} failing histories");
    }

    [Fact]
    public void Without_time_only_the_key_is_named()
    {
        HistoryVerdict verdict = LinearizabilityChecker.Check(
            [Get(1, 0, 10, "a")], new CheckerOptions { ExplainTimeMax = TimeSpan.Zero });
        Assert.Equal("key k: not linearizable\n", verdict.Findings());
    }

    private static Contradiction Find(List<HistoryOperation> history)
    {
        Contradiction? found = LinearizabilityChecker.Check(history).Keys[0].Contradiction;
        Assert.NotNull(found);
        return found;
    }
}
