using System.Globalization;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// Histories of one lock: what is as promised, and each rule broken alone. A holding is written as mode, token,
/// call..return..until: <c>e</c> alone, <c>s</c> shared, <c>p</c> with the number of permits; without an end it goes
/// on. A write is <c>w</c> and the token it needs. With <c>?</c> in front nothing is known of the end, with <c>x</c> it
/// did not happen, with <c>-</c> the answer was no.
/// </summary>
public sealed class LockCheckerTests
{
    [Theory]
    [InlineData("e1 0..10..20")]
    [InlineData("e1 0..10..20, e2 5..21..30, e3 40..50..60")]
    [InlineData("e1 0..10..20, e2 5..20..30")]
    [InlineData("e1 0..10..20, e7 5..30..")]
    [InlineData("e1 0..10..20, ?e 5..90, xe 5..90, -e 5..90, e2 25..30..40")]
    [InlineData("e2 0..10..20, e3 10..20..30")]
    [InlineData("e2 0..10..20, e1 10..15..15")]
    [InlineData("e2 0..10..10, e1 0..10..20")]
    [InlineData("s1 0..10..50, s2 0..20..30, s3 25..30..")]
    [InlineData("s2 0..10..50, s1 0..20..30, e3 0..50..60, s4 0..60..70")]
    [InlineData("p1/2 0..10..50, p2/2 0..20..30, p3/2 0..30..40, p4/2 0..40..")]
    [InlineData("p1/2 0..10..20, p2/3 0..20..30, p3/3 0..25..35, p4/3 0..29..35")]
    [InlineData("p1/1 0..10..20, e2 0..20..30, s3 0..30..40, s4 0..31..40, p5/1 0..40..50")]
    [InlineData("e1 0..10..20, w1 11..12, e2 5..30..40, w1 30..35, w2 31..36, xw1 41..42, ?w1 41..42")]
    [InlineData("e1 0..10..20, w1 30..40, e2 5..31..40")]
    [InlineData("s1 0..10..20, s2 0..11..20, w1 30..40, w2 30..40")]
    [InlineData("e5 0..10..20, w5 30..40, w9 30..40")]
    public void Good_histories(string history)
    {
        HistoryVerdict verdict = LinearizabilityChecker.Check(Read(history));
        Assert.Equal((Verdict.Linearizable, string.Empty), (verdict.Verdict, verdict.Findings()));
        Assert.Equal(Verdict.Linearizable, LinearizabilityChecker.Check(ReadAgain(Read(history))).Verdict);
    }

    [Theory]
    [InlineData("e1 0..10..20, e1 30..40..50", LockChecker.TokensAreGivenOnce, "e1 0..10..20, e1 30..40..50")]
    [InlineData("s1 0..10..20, s1 0..10..20, s2 0..10..20", LockChecker.TokensAreGivenOnce, "s1 0..10..20, s1 0..10..20")]
    [InlineData("p1/2 0..10..20, e1 30..30..30", LockChecker.TokensAreGivenOnce, "p1/2 0..10..20, e1 30..30..30")]
    [InlineData("e2 0..10..20, e1 30..40..50", LockChecker.TokensGrow, "e2 0..10..20, e1 30..40..50")]
    [InlineData("e2 0..10..20, e1 11..21..30", LockChecker.TokensGrow, "e2 0..10..20, e1 11..21..30")]
    [InlineData("s3 0..10..20, s2 11..12..13, s4 0..5..6", LockChecker.TokensGrow, "s4 0..5..6, s2 11..12..13")]
    [InlineData("e1 0..10..20, e2 0..19..30", LockChecker.HoldersExclude, "e1 0..10..20, e2 0..19..30")]
    [InlineData("e1 0..10.., e2 0..19..30", LockChecker.HoldersExclude, "e1 0..10.., e2 0..19..30")]
    [InlineData("e1 0..10..12, e2 0..10..12", LockChecker.HoldersExclude, "e1 0..10..12, e2 0..10..12")]
    [InlineData("e1 0..10..20, s2 0..19..30", LockChecker.HoldersExclude, "e1 0..10..20, s2 0..19..30")]
    [InlineData("s1 0..10..40, s2 0..15..20, e3 0..39..50", LockChecker.HoldersExclude, "s1 0..10..40, e3 0..39..50")]
    [InlineData("s1 0..10..40, p2/9 0..39..50", LockChecker.HoldersExclude, "s1 0..10..40, p2/9 0..39..50")]
    [InlineData("p1/2 0..10..40, p2/3 0..39..50", LockChecker.HoldersExclude, "p1/2 0..10..40, p2/3 0..39..50")]
    [InlineData("p1/1 0..10..40, p2/1 0..39..50", LockChecker.HoldersExclude, "p1/1 0..10..40, p2/1 0..39..50")]
    [InlineData("p1/2 0..10..20, p2/2 0..11..40, p3/2 0..20..40, p4/2 0..39..50", LockChecker.HoldersExclude, "p2/2 0..11..40, p3/2 0..20..40, p4/2 0..39..50")]
    [InlineData("e2 0..10..20, e1 0..20..30", LockChecker.GrantsAreInOrder, "e2 0..10..20, e1 0..20..30")]
    [InlineData("s3 0..10..20, s4 0..10..20, e2 0..20..30, e5 0..30..40", LockChecker.GrantsAreInOrder, "s4 0..10..20, e2 0..20..30")]
    [InlineData("e5 0..10..20, s6 0..20..30, s4 0..20..30", LockChecker.GrantsAreInOrder, "e5 0..10..20, s4 0..20..30")]
    [InlineData("s5 0..10..20, p4/2 0..20..30", LockChecker.GrantsAreInOrder, "s5 0..10..20, p4/2 0..20..30")]
    [InlineData("e1 0..10..20, e2 5..30..40, w1 31..35", LockChecker.FencesHold, "e2 5..30..40, w1 31..35")]
    [InlineData("e1 0..10..20, e2 5..30..40, -w1 31..35", LockChecker.FencesHold, "e2 5..30..40, -w1 31..35")]
    [InlineData("e4 0..10..20, s9 5..30..40, w3 31..35", LockChecker.FencesHold, "e4 0..10..20, w3 31..35")]
    [InlineData("e1 0..10..20, w2 90..95, e2 5..30..40, e3 5..50..60, e4 5..99..", LockChecker.FencesHold, "w2 90..95, e3 5..50..60")]
    public void Bad_histories(string history, string rule, string blamed)
    {
        List<HistoryOperation> operations = Read(history);
        HistoryVerdict verdict = LinearizabilityChecker.Check(operations);
        Contradiction found = Assert.IsType<Contradiction>(
            verdict.Keys.Single(static key => key.Verdict == Verdict.NotLinearizable).Contradiction);
        Assert.Equal(rule, found.Rule);
        Assert.Equal(Read(blamed).Select(Plain).Order(), found.Operations.Select(Plain).Order());
        Assert.Equal(operations.Count, found.Operations.Count + found.LeftOut);
        Assert.Contains(
            $"key lock: not linearizable ({rule}); these {found.Operations.Count} operations contradict each other",
            verdict.Findings(),
            StringComparison.Ordinal);

        // As a file it means the same, and the other rules hold.
        Assert.Equal(verdict.Findings(), LinearizabilityChecker.Check(ReadAgain(operations)).Findings());
        bool restsOnUntil = rule is LockChecker.HoldersExclude or LockChecker.GrantsAreInOrder;
        Assert.Equal(
            restsOnUntil,
            LinearizabilityChecker.Check(operations, new CheckerOptions { LockExclusion = false }).Verdict
                == Verdict.Linearizable);
    }

    [Fact]
    public void Tokens_of_other_locks_are_left_out()
    {
        List<HistoryOperation> operations = Read("e1 0..10..20, e2 5..30..40, w1 31..35");
        HistoryOperation write =
            operations[2] with { Arguments = operations[2].Arguments with { Fence = new LockFence("other", 1) } };
        Assert.Equal(Verdict.Linearizable, LockChecker.Check(Recorded.Lock, operations[..2], [write]).Verdict);
        Assert.Equal(Verdict.Linearizable, LinearizabilityChecker.Check([.. operations[..2], write]).Verdict);
    }

    [Fact]
    public void A_write_with_a_token_is_a_write_of_its_key()
    {
        List<HistoryOperation> operations = Read("e1 0..10..20, w1 11..12");
        Assert.Equal(
            Verdict.Linearizable, LinearizabilityChecker.Check([.. operations, Recorded.Get(9, 13, 14, "v")]).Verdict);
        HistoryVerdict stale = LinearizabilityChecker.Check([.. operations, Recorded.GetNothing(9, 13, 14)]);
        Assert.Equal(
            ["k"],
            stale.Keys.Where(static key => key.Verdict == Verdict.NotLinearizable).Select(static key => key.Key));
        Assert.Equal(
            Verdict.Linearizable,
            LinearizabilityChecker.Check(
                [operations[0], operations[1].Failed(), Recorded.GetNothing(9, 13, 14)]).Verdict);
    }

    [Fact]
    public void A_name_is_a_lock_or_something_else()
    {
        HistoryOperation holding = Read("e1 0..10..20")[0];
        HistoryOperation write = Recorded.Set(5, 0, 10, "a");
        Assert.Equal("k is a lock and a key; give them different names", Refusal(holding with { Key = "k" }, write));
        Assert.Equal(
            "fence names k, which is a key; it must name a lock",
            Refusal(write, Recorded.Set(6, 0, 10, "a") with
            {
                Arguments = new OperationArguments { Fence = new LockFence("k", 1) },
            }));
        Assert.Equal("acquire needs a mode", Refusal(holding with { Arguments = OperationArguments.None }));
    }

    private static string Refusal(params HistoryOperation[] operations) =>
        Assert.Throws<HistoryException>(() => History.Of(operations)).Message;

    /// <summary>What tells operations of a test apart: their process is drawn from the place in the text.</summary>
    private static string Plain(HistoryOperation operation) =>
        $"{operation.Arguments.Mode} {operation.Arguments.Permits} {operation.Result.Token} "
            + $"{operation.Arguments.Fence?.Token} {operation.CallNs} {operation.ReturnNs} {operation.Result.UntilNs}";

    private static List<HistoryOperation> ReadAgain(IEnumerable<HistoryOperation> operations)
    {
        using StringWriter lines = new(CultureInfo.InvariantCulture);
        HistoryWriter writer = new(lines);
        foreach (HistoryOperation operation in operations)
        {
            writer.Write(operation);
        }

        using StringReader source = new(lines.ToString());
        return [.. HistoryReader.Read(source)];
    }

    private static List<HistoryOperation> Read(string history) => [.. history.Split(", ").Select(ReadOne)];

    private static HistoryOperation ReadOne(string text, int process)
    {
        char ending = text[0] is '?' or 'x' or '-' ? text[0] : ' ';
        string[] parts = text.TrimStart('?', 'x', '-').Split(' ');
        string[] times = parts[1].Split("..");
        string[] numbers = parts[0][1..].Split('/');
        long token = numbers[0].Length == 0 ? 0 : Number(numbers[0]);
        LockMode mode = parts[0][0] switch { 's' => LockMode.Shared, 'p' => LockMode.Permit, _ => LockMode.Exclusive };
        HistoryOperation operation = parts[0][0] == 'w'
            ? Recorded.Set(process, Number(times[0]), Number(times[1]), "v").IfTokenHolds(token)
            : Recorded.Acquire(
                process,
                Number(times[0]),
                Number(times[1]),
                token,
                times is [_, _, { Length: > 0 } until] ? Number(until) : null,
                mode,
                mode == LockMode.Permit ? Number(numbers[1]) : 0);
        return ending switch
        {
            '?' => operation.Unanswered(),
            'x' => operation.Failed(),
            '-' => (operation.Kind == OperationKind.Set ? operation.IfRevision(7) : operation).Refused(),
            _ => operation,
        };
    }

    private static int Number(string text) => int.Parse(text, CultureInfo.InvariantCulture);
}
