using System.Globalization;
using Xunit.Abstractions;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// The checker against the definition: thousands of small random histories, and long ones against the clock.
/// </summary>
public sealed class RandomHistoryTests(ITestOutputHelper output)
{
    private const int Histories = 10_000;

    /// <summary>More states than this for one long history would be seconds.</summary>
    private const int StatesMax = 200_000;

    [Fact]
    public void Checker_and_brute_force_agree()
    {
        int good = 0;
        int bad = 0;
        for (int seed = 0; seed < Histories; seed++)
        {
            Random random = new(seed);
            CheckerOptions options = DrawOptions(random);
            List<HistoryOperation> history = new RandomHistory(seed, DrawShape(random)).Create();
            for (int changes = random.Next(4); changes > 0; changes--)
            {
                history = Perturbation.Apply(random, history);
            }

            bool expected = BruteForce.IsLinearizable(history, options);
            Verdict actual = LinearizabilityChecker.Check(
                history, options with { ExplainTimeMax = TimeSpan.Zero }).Verdict;
            Assert.True(
                (expected ? Verdict.Linearizable : Verdict.NotLinearizable) == actual,
                $"seed {seed}: brute force says {expected}, the checker {actual}\n{Text(history)}");
            good += expected ? 1 : 0;
            bad += expected ? 0 : 1;
        }

        output.WriteLine($"Checked: {Histories} random histories against brute force, {good} linearizable, {bad} not");
        Assert.True(good > Histories / 4 && bad > Histories / 4, $"{good} good, {bad} bad");
    }

    [Fact]
    public void What_a_register_answered_is_linearizable()
    {
        for (int seed = 0; seed < 500; seed++)
        {
            Random random = new(seed);
            List<HistoryOperation> history =
                new RandomHistory(
                    seed, DrawShape(random) with { Operations = 40, Processes = 5, LatenessMs = 3 }).Create();
            HistoryVerdict verdict = LinearizabilityChecker.Check(
                history,
                new CheckerOptions { TtlSlack = TimeSpan.Zero, TtlLatenessMax = TimeSpan.FromMilliseconds(3) });
            Assert.True(verdict.Verdict == Verdict.Linearizable, $"seed {seed}: {verdict.Findings()}");
        }
    }

    [Theory]
    [InlineData(100, 10, 5)]
    [InlineData(100, 25, 0)]
    [InlineData(0, 10, 5)]
    [InlineData(0, 25, 0)]
    public void Long_histories_are_fast(int revisionPercent, int unknownPercent, int ttlPercent)
    {
        RandomHistory.Shape shape = new()
        {
            Operations = History.OperationsPerKeyMax,
            Processes = 15,
            UnknownPercent = unknownPercent,
            RevisionPercent = revisionPercent,
            ForgottenPercent = 0,
            ConditionPercent = 15,
            CountPercent = 0,
            TtlPercent = ttlPercent,
            DistinctValues = true,
        };
        CheckerOptions options = new() { StatesMax = StatesMax, ExplainTimeMax = TimeSpan.Zero };
        const int Count = 60;
        int[] verdicts = new int[3];
        int most = 0;
        long begun = System.Diagnostics.Stopwatch.GetTimestamp();
        for (int seed = 0; seed < Count; seed++)
        {
            List<HistoryOperation> history = new RandomHistory(seed, shape).Create();
            KeyVerdict good = LinearizabilityChecker.Check(history, options).Keys[0];
            Assert.True(
                good.Verdict == Verdict.Linearizable, $"seed {seed}: {good.Verdict} after {good.States} states");
            KeyVerdict perturbed = LinearizabilityChecker.Check(
                Perturbation.Apply(new Random(seed), history), options).Keys[0];
            verdicts[(int)perturbed.Verdict]++;
            most = Math.Max(most, Math.Max(good.States, perturbed.States));
        }

        double seconds = System.Diagnostics.Stopwatch.GetElapsedTime(begun).TotalSeconds;
        output.WriteLine(string.Create(
            CultureInfo.InvariantCulture,
            $"Checked: {2 * Count / seconds:N0} histories of {shape.Operations} operations per second "
                + $"({revisionPercent} % with revision, {unknownPercent} % unknown), at most {most:N0} states; "
                + $"perturbed: {verdicts[0]} good, {verdicts[1]} bad, {verdicts[2]} undecided"));
        Assert.Equal(0, verdicts[(int)Verdict.Undecided]);
        Assert.True(verdicts[(int)Verdict.NotLinearizable] > Count / 6);
    }

    private static CheckerOptions DrawOptions(Random random) => new()
    {
        TtlSlack = TimeSpan.FromMilliseconds(random.Next(3)),
        TtlLatenessMax = random.Next(3) == 0 ? null : TimeSpan.FromMilliseconds(random.Next(5)),
    };

    private static RandomHistory.Shape DrawShape(Random random) => new()
    {
        Operations = random.Next(2, 7),
        Processes = random.Next(1, 4),
        UnknownPercent = random.Next(50),
        RevisionPercent = random.Next(3) * 50,
        ForgottenPercent = random.Next(2) * 20,
        ConditionPercent = random.Next(2) * 60,
        CountPercent = random.Next(2) * 40,
        TtlPercent = random.Next(3) * 40,
        TtlMsMax = random.Next(2) == 0 ? 5 : 20,
    };

    private static string Text(IEnumerable<HistoryOperation> history)
    {
        using StringWriter target = new(CultureInfo.InvariantCulture);
        HistoryWriter lines = new(target);
        foreach (HistoryOperation operation in history)
        {
            lines.Write(operation);
        }

        return target.ToString();
    }
}
