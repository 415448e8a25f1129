using System.Diagnostics;
using System.Globalization;
using Xunit.Abstractions;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// The checker of locks against the rules as they are said, thousands of small random histories; each way of spoiling a
/// good one; and a long one.
/// </summary>
public sealed class RandomLockTests(ITestOutputHelper output)
{
    private const int Histories = 10_000;

    /// <summary>Ways of spoiling a history, each of which some rule forbids.</summary>
    private static readonly (string Name, Func<Random, Spoilt, bool> Spoil)[] s_ways =
    [
        ("token twice", DuplicateToken),
        ("tokens swapped", SwapTokens),
        ("called after a higher token", CallLater),
        ("held over the next grant", HoldLonger),
        ("told too early", TellEarlier),
        ("one permit too many", AddHolder),
        ("write with a token that is over", WriteLate),
    ];

    [Fact]
    public void What_a_lock_granted_is_accepted()
    {
        int holdings = 0;
        for (int seed = 0; seed < 1_000; seed++)
        {
            (List<HistoryOperation> operations, List<HistoryOperation> writes) =
                new RandomLockHistory(seed, DrawShape(new Random(seed), 60)).Create();
            HistoryVerdict verdict = LinearizabilityChecker.Check([.. operations, .. writes]);
            Assert.True(verdict.Verdict == Verdict.Linearizable, $"seed {seed}: {verdict.Findings()}");
            holdings += operations.Count(static operation => operation.Outcome == HistoryOutcome.Ok);
        }

        output.WriteLine($"Checked: {holdings} holdings");
        Assert.True(holdings > 20_000, $"{holdings} holdings");
    }

    [Fact]
    public void Checker_and_the_rules_agree()
    {
        int good = 0;
        int bad = 0;
        for (int seed = 0; seed < Histories; seed++)
        {
            Random random = new(seed);
            Spoilt history = Spoilt.Of(new RandomLockHistory(seed, DrawShape(random, random.Next(2, 7))).Create());
            for (int changes = random.Next(8); changes > 0; changes--)
            {
                history.ChangeAny(random);
            }

            bool exclusion = random.Next(4) > 0;
            bool expected = PlainLock.IsKept(history.Holdings, history.Writes, exclusion);
            bool actual = LockChecker.Check(Recorded.Lock, history.Holdings, history.Writes, exclusion).Verdict
                == Verdict.Linearizable;
            Assert.True(
                expected == actual, $"seed {seed}: the rules say {expected}, the checker {actual}\n{history.Text()}");
            good += expected ? 1 : 0;
            bad += expected ? 0 : 1;
        }

        output.WriteLine($"Checked: {Histories} random histories against the rules, {good} as promised, {bad} not");
        Assert.True(good > Histories / 4 && bad > Histories / 4, $"{good} good, {bad} bad");
    }

    [Fact]
    public void What_is_spoilt_is_found()
    {
        int[] found = new int[s_ways.Length];
        for (int seed = 0; seed < 400; seed++)
        {
            Random random = new(seed);
            (List<HistoryOperation> Holdings, List<HistoryOperation> Writes) made =
                new RandomLockHistory(seed, DrawShape(random, 60)).Create();
            for (int way = 0; way < s_ways.Length; way++)
            {
                Spoilt history = Spoilt.Of(made);
                if (s_ways[way].Spoil(random, history))
                {
                    Verdict verdict = LockChecker.Check(Recorded.Lock, history.Holdings, history.Writes).Verdict;
                    Assert.True(
                        verdict == Verdict.NotLinearizable,
                        $"seed {seed}, {s_ways[way].Name}: not found\n{history.Text()}");
                    found[way]++;
                }
            }
        }

        output.WriteLine(
            $"Found: {string.Join(", ", s_ways.Zip(found, static (way, count) => $"{count} {way.Name}"))}");
        Assert.All(found, static count => Assert.True(count > 50));
    }

    [Theory]
    [InlineData(0, 0)]
    [InlineData(90, 0)]
    [InlineData(0, 50)]
    public void Long_histories_are_fast(int sharedPercent, int permits)
    {
        RandomLockHistory.Shape shape =
            new() { Holdings = 145_000, Callers = 100, SharedPercent = sharedPercent, Permits = permits };
        (List<HistoryOperation> operations, List<HistoryOperation> writes) = new RandomLockHistory(1, shape).Create();
        long begun = Stopwatch.GetTimestamp();
        KeyVerdict verdict = LockChecker.Check(Recorded.Lock, operations, writes);
        double seconds = Stopwatch.GetElapsedTime(begun).TotalSeconds;
        int grants = operations.Count(static operation => operation.Outcome == HistoryOutcome.Ok);
        output.WriteLine(string.Create(
            CultureInfo.InvariantCulture,
            $"Checked: {grants:N0} holdings of one lock ({sharedPercent} % shared, {permits} permits) and "
                + $"{writes.Count:N0} writes in {seconds:0.00} s"));
        Assert.Equal(Verdict.Linearizable, verdict.Verdict);
        Assert.True(grants >= 100_000, $"{grants} holdings");
    }

    private static bool DuplicateToken(Random random, Spoilt history)
    {
        if (!history.TryDrawPair(random, static (_, _) => true, out int one, out int other))
        {
            return false;
        }

        history.SetToken(one, history.Holdings[other].Result.Token!.Value);
        return true;
    }

    private static bool SwapTokens(Random random, Spoilt history)
    {
        if (!history.TryDrawPair(
            random, static (a, b) => IsBelieved(a) && IsBelieved(b) && !CanShare(a, b), out int one, out int other))
        {
            return false;
        }

        long token = history.Holdings[one].Result.Token!.Value;
        history.SetToken(one, history.Holdings[other].Result.Token!.Value);
        history.SetToken(other, token);
        return true;
    }

    /// <summary>Only shared ones can be told in another order than that of their tokens.</summary>
    private static bool CallLater(Random random, Spoilt history)
    {
        if (!history.TryDrawPair(
            random,
            static (a, b) => a.Result.Token > b.Result.Token && a.ReturnNs < b.ReturnNs,
            out int one,
            out int other))
        {
            return false;
        }

        history.Holdings[other] = history.Holdings[other] with { CallNs = history.Holdings[one].ReturnNs!.Value + 1 };
        return true;
    }

    private static bool HoldLonger(Random random, Spoilt history)
    {
        if (!history.TryDrawPair(
            random,
            static (a, b) => IsBelieved(b) && !CanShare(a, b) && a.ReturnNs <= b.ReturnNs,
            out int one,
            out int other))
        {
            return false;
        }

        HistoryOperation early = history.Holdings[one];
        history.Holdings[one] = early with
        {
            Result = early.Result with { UntilNs = random.Next(2) == 0 ? null : history.Holdings[other].ReturnNs + 1 },
        };
        return true;
    }

    private static bool TellEarlier(Random random, Spoilt history)
    {
        if (!history.TryDrawPair(
            random,
            static (a, b) =>
                IsBelieved(a)
                    && IsBelieved(b)
                    && !CanShare(a, b)
                    && a.ReturnNs < b.ReturnNs
                    && a.Result.UntilNs - 1 >= b.CallNs,
            out int one,
            out int other))
        {
            return false;
        }

        history.Holdings[other] = history.Holdings[other] with { ReturnNs = history.Holdings[one].Result.UntilNs - 1 };
        return true;
    }

    /// <summary>
    /// As many as there are permits, and one more, at the moment at which one of them learns of its grant.
    /// </summary>
    private static bool AddHolder(Random random, Spoilt history)
    {
        List<HistoryOperation> holders =
        [
            .. history.Holdings.Where(static one =>
                one.Outcome == HistoryOutcome.Ok && one.Arguments.Mode == LockMode.Permit && IsBelieved(one)),
        ];
        if (holders.Count == 0)
        {
            return false;
        }

        HistoryOperation told = holders[random.Next(holders.Count)];
        int held = holders.Count(
            one => one.ReturnNs <= told.ReturnNs && (one.Result.UntilNs ?? long.MaxValue) > told.ReturnNs);
        for (long more = told.Arguments.Permits - held; more >= 0; more--)
        {
            history.Holdings.Add(told with
            {
                CallNs = 0,
                Result = told.Result with { Token = 1_000_000 + more, UntilNs = told.ReturnNs + 1 },
            });
        }

        return true;
    }

    private static bool WriteLate(Random random, Spoilt history)
    {
        if (history.Writes.Count == 0
            || !history.TryDrawPair(
                random,
                static (a, b) => a.Arguments.Mode == LockMode.Exclusive && a.Result.Token > b.Result.Token,
                out int one,
                out int other))
        {
            return false;
        }

        HistoryOperation holding = history.Holdings[one];
        HistoryOperation write = history.Writes[0];
        long callNs = holding.ReturnNs!.Value + 1;
        history.Writes[0] = write with
        {
            CallNs = callNs,
            ReturnNs = callNs + 1,
            Outcome = HistoryOutcome.Ok,
            Arguments = write.Arguments with
            {
                Fence = new LockFence(Recorded.Lock, history.Holdings[other].Result.Token!.Value),
            },
        };
        return true;
    }

    private static bool IsBelieved(HistoryOperation holding) =>
        (holding.Result.UntilNs ?? long.MaxValue) > holding.ReturnNs;

    private static bool CanShare(HistoryOperation one, HistoryOperation other) =>
        one.Arguments.Mode == other.Arguments.Mode && one.Arguments.Mode != LockMode.Exclusive;

    private static RandomLockHistory.Shape DrawShape(Random random, int holdings) => new()
    {
        Holdings = holdings,
        Callers = random.Next(2, 10),
        Permits = random.Next(3) == 0 ? random.Next(1, 5) : 0,
        SharedPercent = random.Next(3) * 40,
        UnknownPercent = random.Next(30),
    };
}
