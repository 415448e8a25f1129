using Kahuna.Tests.Linearizability;
using Kahuna.Tests.Tidy;
using Xunit.Abstractions;

namespace Kahuna.Tests.Serializability;

/// <summary>
/// The checker of list-append histories: a corpus of good and bad ones, random ones against brute force, and bad files.
/// </summary>
public sealed class SerializabilityCheckerTests(ITestOutputHelper output)
{
    private const string Corpus = "Kahuna.Tests/Serializability/Corpus";

    public static TheoryData<string> Histories => [.. Directory.GetFiles(Repository.FullPath(Corpus), "*.jsonl")
        .Select(static file => Path.GetFileNameWithoutExtension(file))];

    [Theory]
    [MemberData(nameof(Histories))]
    public void The_corpus_is_judged_as_its_names_say(string name)
    {
        string file = Repository.FullPath($"{Corpus}/{name}.jsonl");
        using StringWriter said = new();
        int code = CheckHistoryCommand.Run([file], said, TextWriter.Null);
        string text = said.ToString();
        if (name.StartsWith("good-", StringComparison.Ordinal))
        {
            Assert.Equal(0, code);
            Assert.StartsWith("strictly serializable: ", text, StringComparison.Ordinal);
            return;
        }

        Assert.Equal(1, code);
        string anomaly = name switch
        {
            _ when name.Contains("g1a", StringComparison.Ordinal) => "aborted read (G1a)",
            _ when name.Contains("g1b", StringComparison.Ordinal) => "intermediate read (G1b)",
            _ when name.Contains("g1c", StringComparison.Ordinal) => "cyclic information flow (G1c)",
            _ when name.Contains("g-single", StringComparison.Ordinal) => "single anti-dependency cycle (G-single)",
            _ when name.Contains("lost-update", StringComparison.Ordinal) => "anti-dependency cycle (G",
            _ when name.Contains("g2", StringComparison.Ordinal) => "anti-dependency cycle (G2)",
            _ when name.Contains("g0", StringComparison.Ordinal) => "write cycle (G0)",
            _ when name.Contains("real-time", StringComparison.Ordinal) => ", with real time",
            _ when name.Contains("own-append", StringComparison.Ordinal) => "internal",
            _ when name.Contains("not-repeated", StringComparison.Ordinal) => "internal",
            _ when name.Contains("incompatible", StringComparison.Ordinal) => "incompatible order",
            _ when name.Contains("of-nobody", StringComparison.Ordinal) => "unknown value",
            _ when name.Contains("duplicate", StringComparison.Ordinal) => "duplicate",
            _ => "cycle",
        };
        Assert.Contains(anomaly, text, StringComparison.Ordinal);
        Assert.Matches(@"\n  line \d: process ", text);
        Assert.Contains("not strictly serializable: ", text, StringComparison.Ordinal);
    }

    [Fact]
    public void Random_histories_are_judged_as_by_brute_force()
    {
        Random random = new(17);
        int good = 0;
        const int Count = 20_000;
        for (int i = 0; i < Count; i++)
        {
            List<AppendTransaction> history = RandomHistory(random);
            bool expected = IsSerializable(history);
            List<SerializabilityFinding> findings = SerializabilityChecker.Check(history);
            Assert.True(
                expected == (findings.Count == 0),
                $"brute force says {expected}: {string.Join('\n', history.Select(SerializabilityFinding.Text))}\n"
                    + string.Join('\n', findings));
            good += expected ? 1 : 0;
        }

        output.WriteLine($"Checked: {Count} random list-append histories against brute force, {good} serializable");
        Assert.InRange(good, Count / 20, Count - (Count / 20));
    }

    [Fact]
    public void Many_transactions_take_little_time()
    {
        // One after the other and overlapping ones, 100,000 in all: work that grows with the square would show.
        Random random = new(3);
        Dictionary<string, List<long>> lists = [];
        List<AppendTransaction> history = [];
        for (int i = 0; i < 100_000; i++)
        {
            string key = $"k{i / 50}.{random.Next(3)}";
            List<long> list = lists.TryGetValue(key, out List<long>? found) ? found : lists[key] = [];
            long[] read = [.. list];
            list.Add(i);
            history.Add(new AppendTransaction
            {
                Process = i % 20,
                CallNs = (i * 10) - random.Next(100),
                ReturnNs = (i * 10) + 5 + random.Next(100),
                Outcome = HistoryOutcome.Ok,
                Steps = [new AppendStep(key, null, read), new AppendStep(key, i, null)],
            });
        }

        Assert.Empty(SerializabilityChecker.Check(history));
    }

    [Theory]
    [InlineData("{\"process\":1,\"txn\":[[\"w\",\"x\",1]],\"call\":0,\"return\":1,\"outcome\":\"ok\"}", "neither")]
    [InlineData("{\"process\":1,\"txn\":[[\"r\",\"x\",[1.5]]],\"call\":0,\"return\":1,\"outcome\":\"ok\"}", "whole")]
    [InlineData("{\"process\":1,\"txn\":[],\"call\":5,\"return\":1,\"outcome\":\"ok\"}", "before call")]
    [InlineData("{\"process\":1,\"txn\":[],\"call\":5,\"outcome\":\"ok\"}", "return is missing")]
    [InlineData("{\"process\":1,\"txn\":[],\"call\":5,\"return\":9,\"outcome\":\"maybe\"}", "outcome")]
    [InlineData("{\"process\":1,\"txn\":[]", "is no JSON")]
    [InlineData(
        "{\"process\":1,\"txn\":[[\"append\",\"x\",1],[\"append\",\"x\",1]],\"call\":0,\"outcome\":\"unknown\"}",
        "appended before")]
    public void A_bad_line_is_named(string line, string words)
    {
        string file = Path.GetTempFileName();
        try
        {
            File.WriteAllText(file, line + "\n");
            using StringWriter error = new();
            Assert.Equal(2, CheckHistoryCommand.Run([file], TextWriter.Null, error));
            Assert.Contains("line 1: ", error.ToString(), StringComparison.Ordinal);
            Assert.Contains(words, error.ToString(), StringComparison.Ordinal);
        }
        finally
        {
            File.Delete(file);
        }
    }

    /// <summary>A history of an order that exists, of which something may be spoilt.</summary>
    private static List<AppendTransaction> RandomHistory(Random random)
    {
        int count = 3 + random.Next(4);
        Dictionary<string, List<long>> lists = new(StringComparer.Ordinal) { ["x"] = [], ["y"] = [] };
        List<AppendTransaction> history = [];
        long value = 0;
        for (int i = 0; i < count; i++)
        {
            HistoryOutcome outcome = random.Next(8) switch
            {
                0 => HistoryOutcome.Fail,
                1 => HistoryOutcome.Unknown,
                _ => HistoryOutcome.Ok,
            };
            bool happens = outcome == HistoryOutcome.Ok || (outcome == HistoryOutcome.Unknown && random.Next(2) == 0);
            Dictionary<string, List<long>> own = lists.ToDictionary(
                static pair => pair.Key, static pair => pair.Value.ToList());
            List<AppendStep> steps = [];
            for (int step = 1 + random.Next(3); step > 0; step--)
            {
                string key = random.Next(2) == 0 ? "x" : "y";
                if (random.Next(5) < 2)
                {
                    own[key].Add(++value);
                    steps.Add(new AppendStep(key, value, null));
                }
                else
                {
                    steps.Add(new AppendStep(key, null, outcome == HistoryOutcome.Ok ? [.. own[key]] : null));
                }
            }

            lists = happens ? own : lists;
            long moment = i * 10;
            history.Add(new AppendTransaction
            {
                Process = i,
                CallNs = Math.Max(0, moment - random.Next(25)),
                ReturnNs = moment + random.Next(25),
                Outcome = outcome,
                Steps = [.. steps],
            });
        }

        for (int spoils = random.Next(4); spoils > 0; spoils--)
        {
            history = Spoil(history, random);
        }

        return history;
    }

    /// <summary>Some lists that were read lack their end or have another order, or two times are others.</summary>
    private static List<AppendTransaction> Spoil(List<AppendTransaction> history, Random random)
    {
        int at = random.Next(history.Count);
        AppendTransaction spoilt = history[at];
        if (random.Next(3) == 0)
        {
            long call = random.Next(40);
            history[at] = spoilt with { CallNs = call, ReturnNs = call + random.Next(10) };
            return history;
        }

        history[at] = spoilt with
        {
            Steps =
            [
                .. spoilt.Steps.Select(step => step.Read is { Length: > 0 } read && random.Next(2) == 0
                    ? step with { Read = random.Next(2) == 0 ? read[..^1] : [.. read.Reverse()] }
                    : step),
            ],
        };
        return history;
    }

    /// <summary>Tries all orders, and that each transaction of unknown end happened, and that it did not.</summary>
    private static bool IsSerializable(List<AppendTransaction> history)
    {
        AppendTransaction[] certain = [.. history.Where(static each => each.Outcome == HistoryOutcome.Ok)];
        AppendTransaction[] unknown = [.. history.Where(static each => each.Outcome == HistoryOutcome.Unknown)];
        for (int chosen = 0; chosen < 1 << unknown.Length; chosen++)
        {
            List<AppendTransaction> all = [.. certain, .. unknown.Where((_, i) => (chosen & (1 << i)) != 0)];
            if (TryOrders(all, [], new Dictionary<string, long[]>(StringComparer.Ordinal)))
            {
                return true;
            }
        }

        return false;
    }

    private static bool TryOrders(
        List<AppendTransaction> left, List<AppendTransaction> done, Dictionary<string, long[]> lists)
    {
        if (left.Count == 0)
        {
            return true;
        }

        foreach (AppendTransaction next in left)
        {
            bool isInTime = !left.Exists(other => other != next
                && other.Outcome == HistoryOutcome.Ok
                && other.ReturnNs < next.CallNs);
            Dictionary<string, long[]> after = new(lists, StringComparer.Ordinal);
            if (isInTime && Fits(next, after)
                && TryOrders([.. left.Where(each => each != next)], [.. done, next], after))
            {
                return true;
            }
        }

        return false;
    }

    private static bool Fits(AppendTransaction transaction, Dictionary<string, long[]> lists)
    {
        foreach (AppendStep step in transaction.Steps)
        {
            long[] list = lists.GetValueOrDefault(step.Key, []);
            if (step.Appended is { } value)
            {
                lists[step.Key] = [.. list, value];
            }
            else if (step.Read is { } read && !read.AsSpan().SequenceEqual(list))
            {
                return false;
            }
        }

        return true;
    }
}
