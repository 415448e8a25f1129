using System.Globalization;
using Kahuna.Tests.Linearizability;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.WatchStreams;
using static Kahuna.Tests.Linearizability.Recorded;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>
/// The parts of the soak that decide about its verdict: what is wrong is found and written down, keys stay short, a run
/// that proved nothing says so.
/// </summary>
public sealed class SoakPartsTests : IDisposable
{
    private readonly string _file = Path.GetTempFileName();

    public void Dispose() => File.Delete(_file);

    [Fact]
    public async Task Contradiction_is_found_at_once_and_written_down()
    {
        using SoakChecker checker = new(new SoakOptions { HistoryFile = _file });
        await checker.AddAsync(KeyOf(Set(1, 0, 10, "a", 1), Set(1, 50, 60, "b", 2), Get(2, 70, 80, "a", 1)));
        await checker.Found.WaitAsync(LastNet.Span);
        await checker.FinishAsync([]);
        Assert.Equal((1, 1), (checker.Checked, checker.Violations));
        Assert.Contains("these 2 operations contradict each other", checker.Findings, StringComparison.Ordinal);
        Assert.Contains(_file, checker.Command, StringComparison.Ordinal);
        Assert.Equal(1, CheckHistoryCommand.Run([_file], TextWriter.Null, TextWriter.Null));
    }

    [Fact]
    public async Task Without_a_file_only_keys_with_a_finding_are_written()
    {
        SoakOptions options = new() { Seed = (ulong)Random.Shared.NextInt64(1L << 40, long.MaxValue) };
        using SoakChecker checker = new(options);
        await checker.AddAsync(KeyOf(Set(1, 0, 10, "a", 1)));
        await checker.FinishAsync([KeyOf(Set(1, 20, 30, "a", 1), Get(2, 40, 50, "b", 1))]);
        try
        {
            Assert.Equal((2, 1, true), (checker.Checked, checker.Violations, checker.WroteFile));
            Assert.Equal(2, File.ReadLines(options.FindingsFile).Count());
        }
        finally
        {
            File.Delete(options.FindingsFile);
        }
    }

    [Fact]
    public async Task What_a_watch_was_not_told_is_found_and_written_down()
    {
        using SoakChecker checker = new(new SoakOptions { HistoryFile = _file });
        SoakKey whole = KeyOf(Set(1, 10, 20, "a", 1), Set(1, 50, 60, "b", 2));
        whole.Watch = Watched((15, 1, "a"), (55, 2, "b"));
        await checker.AddAsync(whole);
        await checker.FinishAsync([]);
        Assert.Equal((1, 0), (checker.Checked, checker.Violations));
        Assert.Equal(0, CheckHistoryCommand.Run([_file], TextWriter.Null, TextWriter.Null));

        using SoakChecker strict = new(new SoakOptions { HistoryFile = _file });
        SoakKey torn = KeyOf(Set(1, 10, 20, "a", 1), Set(1, 50, 60, "b", 2), Set(1, 70, 80, "c", 3));
        torn.Watch = Watched((15, 1, "a"), (75, 3, "c"));
        await strict.AddAsync(torn);
        await strict.Found.WaitAsync(LastNet.Span);
        await strict.FinishAsync([]);
        Assert.Contains("gap: ", strict.Findings, StringComparison.Ordinal);
        Assert.Equal(1, CheckHistoryCommand.Run([_file], TextWriter.Null, TextWriter.Null));
    }

    [Fact]
    public async Task Good_keys_are_counted_and_forgotten()
    {
        using SoakChecker checker = new(new SoakOptions());
        await checker.AddAsync(KeyOf(Set(1, 0, 10, "a", 1), Get(2, 20, 30, "a", 1)));
        await checker.FinishAsync([KeyOf(Set(1, 40, 50, "a", 1))]);
        Assert.Equal((2, 0, 0), (checker.Checked, checker.Violations, checker.Undecided));
        Assert.False(checker.Found.IsCompleted);
        Assert.False(checker.WroteFile);
    }

    [Fact]
    public void Keys_are_retired_and_given_away_when_their_last_operation_is_back()
    {
        SoakKeys keys = new(slots: 1);
        SimRandom random = new(1);
        SoakKey first = keys.Take(random, out _);
        for (int i = 1; i < SoakKeys.OperationsMax; i++)
        {
            Assert.Same(first, keys.Take(random, out _));
            Assert.False(keys.Return(first, Get(1, i, i + 1, "a", 1)));
        }

        SoakKey second = keys.Take(random, out HistoryOperation? latest);
        Assert.NotEqual(first.Name, second.Name);
        Assert.Null(latest);
        Assert.Equal([second, first], keys.TakeRest());
        Assert.True(keys.Return(first, Get(1, 900, 901, "a", 1)));
        Assert.Equal(SoakKeys.OperationsMax, first.Operations.Count);
        Assert.Equal([second], keys.TakeRest());
    }

    [Fact]
    public void Run_without_answers_faults_or_unknown_outcomes_proved_nothing()
    {
        SoakTally tally = new();
        string[] missed = [.. tally.Missed(TimeSpan.FromSeconds(60))];
        Assert.Contains("only 0 operations were answered, and 1,000 are wanted", missed);
        Assert.Contains("no Extend was answered", missed);
        Assert.Contains("no operation ended with an unknown outcome", missed);
        Assert.Contains("KillAll never happened", missed);
        Assert.DoesNotContain("KillAll never happened", tally.Missed(TimeSpan.FromSeconds(10)));
        tally.Count(SoakFault.KillAll, ofLeader: false);
        tally.Count(Set(1, 0, 10, "a", 1) with { Outcome = HistoryOutcome.Unknown }, "ConnectionLost");
        Assert.DoesNotContain("KillAll never happened", tally.Missed(TimeSpan.FromSeconds(60)));
        Assert.DoesNotContain("no operation ended with an unknown outcome", tally.Missed(TimeSpan.FromSeconds(60)));
        Assert.Equal("ConnectionLost (unknown) 1", tally.Errors);
    }

    [Fact]
    public void Drawn_operations_are_what_a_history_takes()
    {
        SoakDraw draw = new(7, new SimRandom(3));
        SoakKey key = new("soak/1", isCounter: false);
        HistoryOperation? latest = null;
        List<HistoryOperation> drawn = [];
        for (int i = 0; i < 200; i++)
        {
            HistoryOperation operation = draw.Next(key, latest) with { CallNs = i * 10, ReturnNs = (i * 10) + 5 };
            drawn.Add(operation);
            latest = Set(7, i * 10, (i * 10) + 5, "a", 1);
        }

        History history = History.Of(drawn);
        Assert.Equal(
            HistoryFields.KeyKinds,
            history.Keys["soak/1"].Select(static operation => operation.Kind).Distinct().Order());
        string[] values = [.. drawn.Select(static operation => operation.Arguments.Value).OfType<string>()];
        Assert.Equal(values.Length, values.Distinct().Count());
    }

    [Theory]
    [InlineData("--minutes needs a number above 0", "--minutes", "0")]
    [InlineData("--seed needs a whole number", "--seed", "one")]
    [InlineData("--seed needs a value", "--seed")]
    [InlineData("unknown option --nodes", "--nodes", "5")]
    public void Bad_usage_is_2(string expected, params string[] arguments)
    {
        using StringWriter errors = new(CultureInfo.InvariantCulture);
        Assert.Equal(2, SoakCommand.Run(arguments, TextWriter.Null, errors));
        Assert.StartsWith("soak: " + expected, errors.ToString(), StringComparison.Ordinal);
    }

    /// <summary>A watch that has begun before its changes; times are in ms.</summary>
    private static WatchStream Watched(params (int At, long Revision, string Value)[] changes) => new()
    {
        Name = Recorded.Key,
        Scope = WatchScopeKind.Key,
        From = WatchStream.Now,
        CallNs = 0,
        Events =
        [
            new StreamEvent { Kind = StreamEventKind.Progress, AtNs = 1_000_000 },
            .. changes.Select(static change => new StreamEvent
            {
                Kind = StreamEventKind.Set,
                AtNs = change.At * 1_000_000L,
                Key = Recorded.Key,
                Revision = change.Revision,
                HasValue = true,
                Value = change.Value,
            }),
        ],
        Line = 0,
    };

    private static SoakKey KeyOf(params HistoryOperation[] operations)
    {
        SoakKey key = new(operations[0].Key, isCounter: false);
        foreach (HistoryOperation operation in operations)
        {
            key.Begin();
            key.End(operation);
        }

        return key;
    }
}
