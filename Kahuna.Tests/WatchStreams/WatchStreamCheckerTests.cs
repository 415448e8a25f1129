using Kahuna.Tests.Linearizability;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.WatchStreams;

/// <summary>The checker of watches: a corpus of good and bad histories, random spoilt ones, and bad files.</summary>
public sealed class WatchStreamCheckerTests
{
    private const string Corpus = "Kahuna.Tests/WatchStreams/Corpus";

    private static readonly string[] s_rules =
    [
        "gap", "duplicate", "order", "never written", "not committed", "content", "future", "not told",
        "before the start", "state", "scope", "expiry",
    ];

    public static TheoryData<string> Histories => [.. Directory.GetFiles(Repository.FullPath(Corpus), "*.jsonl")
        .Select(static file => Path.GetFileNameWithoutExtension(file))];

    [Theory]
    [MemberData(nameof(Histories))]
    public void The_corpus_is_judged_as_its_names_say(string name)
    {
        (int code, string text, string error) = Run(Repository.FullPath($"{Corpus}/{name}.jsonl"));
        Assert.Empty(error);
        if (name.StartsWith("good-", StringComparison.Ordinal))
        {
            Assert.True(code == 0, text);
            Assert.Contains("\nwatches agree with the writes: ", $"\n{text}", StringComparison.Ordinal);
            return;
        }

        Assert.Equal(1, code);
        if (name == "bad-write-of-the-same-history")
        {
            Assert.Contains("not linearizable: 1 of 1 keys", text, StringComparison.Ordinal);
            Assert.Contains("\nwatches agree with the writes: ", text, StringComparison.Ordinal);
            return;
        }

        string rule = s_rules.First(rule =>
            name.Contains(rule.Replace(' ', '-'), StringComparison.Ordinal));
        Assert.Contains($"\n{rule}: ", $"\n{text}", StringComparison.Ordinal);
        Assert.Matches(@"\n  line \d+: watch of ", text);
        Assert.Contains("watches do not agree with the writes: ", text, StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(Histories))]
    public void What_is_written_is_read_again(string name)
    {
        List<WatchStream> read = WatchesIn(File.ReadAllText(Repository.FullPath($"{Corpus}/{name}.jsonl")));
        using StringWriter written = new();
        read.ForEach(watch => WatchHistoryWriter.Write(written, watch, process: 7));
        List<WatchStream> again = WatchesIn(written.ToString());
        Assert.Equal(read.Count, again.Count);
        foreach ((WatchStream before, WatchStream after) in read.Zip(again))
        {
            Assert.Equal(before with { Events = [], Line = 0 }, after with { Events = [], Line = 0 });
            Assert.Equal(before.Events, after.Events);
        }
    }

    [Fact]
    public void Every_rule_has_a_bad_history()
    {
        string[] names =
            [.. Directory.GetFiles(Repository.FullPath(Corpus)).Select(static file => Path.GetFileName(file))];
        Assert.All(s_rules, rule => Assert.Contains(
            names, name => name.StartsWith($"bad-{rule.Replace(' ', '-')}", StringComparison.Ordinal)));
    }

    [Fact]
    public void A_watch_of_random_writes_is_good_until_it_is_spoilt()
    {
        Random random = new(11);
        for (int i = 0; i < 2_000; i++)
        {
            (List<HistoryOperation> writes, List<StreamEvent> events) = RandomHistory(random);
            Assert.Empty(Check(writes, events));
            Assert.NotEmpty(Check(writes, Spoil(events, random)));
        }
    }

    [Theory]
    [InlineData("\"scope\":\"tree\",\"from\":\"now\"", "", "args.scope is tree; it must be one of key, bucket, prefix")]
    [InlineData("\"scope\":\"key\"", "", "args.from is missing")]
    [InlineData("\"scope\":\"key\",\"from\":\"p9\"", "", "the position p9 is of no read and of no event")]
    [InlineData("\"scope\":\"key\",\"from\":\"now\",\"to\":1", "", "args.to is no field of this operation")]
    [InlineData("\"scope\":\"key\",\"from\":\"now\"", "{\"kind\":\"put\",\"at\":5}", "result.events[0].kind is put")]
    [InlineData("\"scope\":\"key\",\"from\":\"now\"", "{\"kind\":\"set\",\"at\":5}", "result.events[0].key is missing")]
    [InlineData("\"scope\":\"key\",\"from\":\"now\"", "{\"kind\":\"progress\"}", "result.events[0].at is missing")]
    [InlineData("\"scope\":\"key\",\"from\":\"now\"", "{\"kind\":\"progress\",\"at\":5,\"asOf\":9}", "asOf is after at")]
    [InlineData("\"scope\":\"key\",\"from\":\"now\"", "{\"kind\":\"lagging\",\"at\":5,\"key\":\"k\"}", "key is no field")]
    [InlineData("\"scope\":\"key\",\"from\":\"now\"", "{\"kind\":\"progress\",\"at\":0}", "before the call")]
    [InlineData("\"scope\":\"key\",\"from\":\"now\"", "{\"kind\":\"progress\",\"at\":99}", "before the last event")]
    public void A_bad_line_is_refused(string args, string events, string expected)
    {
        string line = $"{{\"process\":1,\"key\":\"k\",\"op\":\"watch\",\"args\":{{{args}}},\"call\":1,\"return\":10,"
            + $"\"outcome\":\"ok\",\"result\":{{\"events\":[{events}]}}}}";
        string file = Path.GetTempFileName();
        try
        {
            File.WriteAllText(file, line);
            (int code, _, string error) = Run(file);
            Assert.Equal(2, code);
            Assert.Contains($": line 1: ", error, StringComparison.Ordinal);
            Assert.Contains(expected, error, StringComparison.Ordinal);
        }
        finally
        {
            File.Delete(file);
        }
    }

    private static List<WatchStream> WatchesIn(string text)
    {
        List<WatchStream> watches = [];
        _ = HistoryReader.Read(new StringReader(text), watches).Count();
        return watches;
    }

    private static (int Code, string Output, string Error) Run(string file)
    {
        using StringWriter output = new() { NewLine = "\n" };
        using StringWriter error = new() { NewLine = "\n" };
        int code = CheckHistoryCommand.Run([file], output, error);
        return (code, output.ToString(), error.ToString());
    }

    private static List<WatchFinding> Check(List<HistoryOperation> writes, List<StreamEvent> events) =>
        WatchStreamChecker.Check(
            writes,
            [
                new WatchStream
                {
                    Name = "k",
                    Scope = WatchScopeKind.Prefix,
                    From = WatchStream.Now,
                    CallNs = 0,
                    Events = events,
                    Line = 1,
                },
            ],
            new CheckerOptions());

    /// <summary>Sets and deletions of three keys, in turn, some of unknown outcome, and their watch.</summary>
    private static (List<HistoryOperation> Writes, List<StreamEvent> Events) RandomHistory(Random random)
    {
        List<HistoryOperation> writes = [];
        List<StreamEvent> events = [new() { Kind = StreamEventKind.Progress, AtNs = 1 }];
        long[] revisions = new long[3];
        int count = random.Next(4, 15);
        for (int i = 1; i <= count; i++)
        {
            int number = random.Next(revisions.Length);
            bool isSet = revisions[number] == 0 || random.Next(4) > 0;
            bool isKnown = random.Next(4) > 0;
            bool happens = isKnown || random.Next(2) == 0;
            revisions[number] += happens ? 1 : 0;
            writes.Add(new HistoryOperation
            {
                Process = isKnown ? 1 : i + 1,
                Key = $"k{number}",
                Kind = isSet ? OperationKind.Set : OperationKind.Delete,
                Arguments = new OperationArguments { Value = isSet ? $"{i}" : null },
                CallNs = i * 100,
                ReturnNs = isKnown ? (i * 100) + 50 : null,
                Outcome = isKnown ? HistoryOutcome.Ok : HistoryOutcome.Unknown,
                Result = isKnown
                    ? new OperationResult { Affirmed = true, Revision = revisions[number] }
                    : OperationResult.Unconstrained,
            });
            if (happens)
            {
                events.Add(new StreamEvent
                {
                    Kind = isSet ? StreamEventKind.Set : StreamEventKind.Deleted,
                    AtNs = (i * 100) + 60,
                    Key = $"k{number}",
                    Revision = revisions[number],
                    HasValue = isSet,
                    Value = isSet ? $"{i}" : null,
                });
            }
        }

        events.Add(new StreamEvent { Kind = StreamEventKind.Progress, AtNs = 9_000, AsOfNs = 8_000 });
        return (writes, events);
    }

    /// <summary>The events with one mistake: lost, told twice, swapped, or with another content.</summary>
    private static List<StreamEvent> Spoil(List<StreamEvent> events, Random random)
    {
        List<StreamEvent> spoilt = [.. events];
        int[] changes = [.. Enumerable.Range(0, events.Count).Where(i => events[i].IsChange)];
        int at = changes[random.Next(changes.Length)];
        StreamEvent told = spoilt[at];
        int next = spoilt.FindIndex(at + 1, each => each.Key == told.Key);
        switch (random.Next(4))
        {
            // Before the first change of a key its revision is unknown.
            case 0 when next > 0 && spoilt.FindIndex(each => each.Key == told.Key) < at:
                spoilt.RemoveAt(at);
                break;
            case 1 when next > 0:
                spoilt[at] = spoilt[next] with { AtNs = told.AtNs };
                spoilt[next] = told with { AtNs = events[next].AtNs };
                break;
            case 2:
                spoilt.Insert(at + 1, told);
                break;
            default:
                spoilt[at] = told with { Kind = StreamEventKind.Set, HasValue = true, Value = "another" };
                break;
        }

        return spoilt;
    }
}
