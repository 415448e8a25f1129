using System.Globalization;
using System.Text;
using Kahuna.Tests.Serializability;
using Kahuna.Tests.Tidy;
using Kahuna.Tests.WatchStreams;
using static Kahuna.Tests.Linearizability.Recorded;

namespace Kahuna.Tests.Linearizability;

/// <summary>
/// The lines of a history file: what is written is read again, the page shows lines that are good, and what is wrong is
/// named with its line.
/// </summary>
public sealed class HistoryFormatTests
{
    private const string Good = """{"process":1,"key":"k","op":"get","call":1,"return":2,"outcome":"ok"}""";

    [Fact]
    public void What_is_written_is_read_again()
    {
        for (int seed = 0; seed < 200; seed++)
        {
            List<HistoryOperation> written =
                new RandomHistory(seed, new RandomHistory.Shape { Operations = 20, Processes = 3 }).Create();
            List<HistoryOperation> read = Read(Lines(written));
            Assert.Equal(Enumerable.Range(1, 20), read.Select(operation => operation.Line));
            Assert.Equal(written, read.Select(operation => operation with { Line = 0 }));
        }
    }

    [Fact]
    public void A_line_is_written_so()
    {
        HistoryOperation[] operations =
        [
            Set(3, 1, 2, "ä\"\n", 4).IfValue("x").IfRevision(3).For(500) with { Key = "k1" },
            Set(3, 3, 4, null).IfValue(null).Refused(),
            Get(3, 5, 6, null, 7),
            Increment(3, 7, 8, -2, 8, by: -5),
            Delete(3, 9, 10).Unanswered(),
            Acquire(4, 1, 2, 7, 5),
            Acquire(4, 3, 4, 8, mode: LockMode.Permit, permits: 3),
            Acquire(4, 5, 6, 9, mode: LockMode.Shared).Refused(),
            Delete(4, 7, 8).IfTokenHolds(9),
        ];
        Assert.Equal(
            """
            {"process":3,"key":"k1","op":"set","args":{"value":"ä\"\n","ttlMs":500,"cmp":"x","cmpRev":3},"call":1000000,"return":2000000,"outcome":"ok","result":{"set":true,"revision":4}}
            {"process":3,"key":"k","op":"set","args":{"value":null,"cmpNull":true},"call":3000000,"return":4000000,"outcome":"ok","result":{"set":false}}
            {"process":3,"key":"k","op":"get","args":{},"call":5000000,"return":6000000,"outcome":"ok","result":{"found":true,"value":null,"revision":7}}
            {"process":3,"key":"k","op":"increment","args":{"by":-5},"call":7000000,"return":8000000,"outcome":"ok","result":{"incremented":true,"value":-2,"revision":8}}
            {"process":3,"key":"k","op":"delete","args":{},"call":9000000,"return":null,"outcome":"unknown"}
            {"process":4,"key":"lock","op":"acquire","args":{"mode":"exclusive"},"call":1000000,"return":2000000,"outcome":"ok","result":{"granted":true,"token":7,"until":5000000}}
            {"process":4,"key":"lock","op":"acquire","args":{"mode":"permit","permits":3},"call":3000000,"return":4000000,"outcome":"ok","result":{"granted":true,"token":8}}
            {"process":4,"key":"lock","op":"acquire","args":{"mode":"shared"},"call":5000000,"return":6000000,"outcome":"ok","result":{"granted":false}}
            {"process":4,"key":"k","op":"delete","args":{"fence":{"lock":"lock","token":9}},"call":7000000,"return":8000000,"outcome":"ok","result":{"deleted":true}}

            """.ReplaceLineEndings("\n"),
            Lines(operations));
        Assert.Equal(operations, Read(Lines(operations)).Select(operation => operation with { Line = 0 }));
    }

    [Fact]
    public void Fields_that_say_nothing_may_be_there()
    {
        const string Line = """{"process":3,"key":"k1","op":"set","args":{"value":"a","nx":false,"xx":false,"cmp":null,"cmpRev":null,"ttlMs":null},"call":1200,"return":1900,"outcome":"ok","result":{"set":true,"revision":4}}""";
        HistoryOperation expected = new()
        {
            Process = 3,
            Key = "k1",
            Kind = OperationKind.Set,
            Arguments = new OperationArguments { Value = "a" },
            CallNs = 1200,
            ReturnNs = 1900,
            Outcome = HistoryOutcome.Ok,
            Result = new OperationResult { Affirmed = true, Revision = 4 },
            Line = 1,
        };
        Assert.Equal(expected, Assert.Single(Read(Line)));
        Assert.Equal(
            expected with { Kind = OperationKind.Delete, Arguments = OperationArguments.None },
            Assert.Single(Read(
                Line.Replace("\"set\":", "\"deleted\":").Replace("\"set\"", "\"delete\"").Replace("\"a\"", "null"))));
    }

    [Fact]
    public void A_value_says_found_unless_it_is_the_null_of_a_key_that_is_not_there()
    {
        Assert.Equal(new OperationResult { HasValue = true, Value = "a" }, ResultOf("""{"value":"a"}"""));
        Assert.Equal(new OperationResult { HasValue = true }, ResultOf("""{"value":null}"""));
        Assert.Equal(new OperationResult { Affirmed = true, HasValue = true }, ResultOf("""{"found":true,"value":null}"""));
        Assert.Equal(new OperationResult { Affirmed = true }, ResultOf("""{"found":true}"""));
        Assert.Equal(new OperationResult { Affirmed = false, Revision = 2 }, ResultOf("""{"found":false,"value":null,"revision":2}"""));
        Assert.Equal(OperationResult.Unconstrained, ResultOf("null"));
    }

    [Fact]
    public void Lines_on_the_page_are_a_good_history()
    {
        string[] page = Repository.Lines("docs/histories.md");
        string[] lines = [.. page.Where(static line => line.StartsWith('{') && !AppendHistoryReader.IsOne(line))];
        List<WatchStream> watches = [];
        List<HistoryOperation> read = [.. HistoryReader.Read(new StringReader(string.Join('\n', lines)), watches)];
        Assert.Equal(
            Enum.GetValues<OperationKind>(), read.Select(operation => operation.Kind).Distinct().Order());
        HistoryVerdict verdict = LinearizabilityChecker.Check(read);
        Assert.Equal(Verdict.Linearizable, verdict.Verdict);
        Assert.Single(watches);
        Assert.Empty(WatchStreamChecker.Check(read, watches, new CheckerOptions()));
        Assert.All(Enum.GetValues<OperationKind>(), kind =>
            Assert.Contains($"| `{HistoryFields.NameOf(kind)}` |", string.Join('\n', page), StringComparison.Ordinal));
    }

    [Theory]
    [InlineData("", "is no JSON")]
    [InlineData("{\"process\":1,", "is no JSON at byte")]
    [InlineData("[]", "is no JSON object")]
    [InlineData("""{"process":1,"process":2}""", "process is there twice")]
    [InlineData("""{"process":1,"key":"\ud800","op":"get","call":1,"return":2,"outcome":"ok"}""", "half of a pair")]
    [InlineData("""{"key":"k","op":"get","call":1,"return":2,"outcome":"ok"}""", "process is missing")]
    [InlineData("""{"process":1.5,"key":"k","op":"get","call":1,"return":2,"outcome":"ok"}""", "process must be a whole number of 64 bits")]
    [InlineData("""{"process":1,"key":7,"op":"get","call":1,"return":2,"outcome":"ok"}""", "key must be a string")]
    [InlineData("""{"process":1,"key":"","op":"get","call":1,"return":2,"outcome":"ok"}""", "key is empty")]
    [InlineData("""{"process":1,"key":"k","op":"cas","call":1,"return":2,"outcome":"ok"}""", "op is cas; it must be one of set, get, exists, delete, extend, increment, next, acquire")]
    [InlineData("""{"process":1,"key":"k","op":"get","call":1,"return":2,"outcome":"info"}""", "outcome is info; it must be one of ok, fail, unknown")]
    [InlineData("""{"process":1,"key":"k","op":"get","call":-1,"return":2,"outcome":"ok"}""", "call is -1; times are 0 or greater")]
    [InlineData("""{"process":1,"key":"k","op":"get","call":3,"return":2,"outcome":"ok"}""", "return is 2, before the call at 3")]
    [InlineData("""{"process":1,"key":"k","op":"get","call":3,"return":2,"outcome":"unknown"}""", "return is 2, before the call at 3")]
    [InlineData("""{"process":1,"key":"k","op":"get","call":1,"return":null,"outcome":"ok"}""", "the outcome is ok, so return must be given")]
    [InlineData("""{"process":1,"key":"k","op":"get","call":1,"return":2,"outcome":"ok","node":1}""", "node is no field of this operation")]
    [InlineData("""{"process":1,"key":"k","op":"get","args":{"nx":true},"call":1,"return":2,"outcome":"ok"}""", "args.nx is no field of this operation")]
    [InlineData("""{"process":1,"key":"k","op":"delete","args":{"nx":true},"call":1,"return":2,"outcome":"ok"}""", "args.nx is no field of this operation")]
    [InlineData("""{"process":1,"key":"k","op":"set","call":1,"return":2,"outcome":"ok"}""", "args.value is missing")]
    [InlineData("""{"process":1,"key":"k","op":"set","args":{"value":1},"call":1,"return":2,"outcome":"ok"}""", "args.value must be a string")]
    [InlineData("""{"process":1,"key":"k","op":"set","args":{"value":"a","nx":"yes"},"call":1,"return":2,"outcome":"ok"}""", "args.nx must be true or false")]
    [InlineData("""{"process":1,"key":"k","op":"set","args":{"value":"a","ttlMs":0},"call":1,"return":2,"outcome":"ok"}""", "ttlMs is 0; it must be 1 to")]
    [InlineData("""{"process":1,"key":"k","op":"set","args":{"value":"a","cmpRev":0},"call":1,"return":2,"outcome":"ok"}""", "cmpRev is 0; it must be 1 or greater")]
    [InlineData("""{"process":1,"key":"k","op":"extend","args":{},"call":1,"return":2,"outcome":"ok"}""", "args.ttlMs is missing")]
    [InlineData("""{"process":1,"key":"k","op":"increment","args":{},"call":1,"return":2,"outcome":"ok"}""", "args.by is missing")]
    [InlineData("""{"process":1,"key":"k","op":"get","call":1,"return":2,"outcome":"ok","result":{"revison":1}}""", "result.revison is no field of this operation")]
    [InlineData("""{"process":1,"key":"k","op":"get","call":1,"return":2,"outcome":"ok","result":[]}""", "result must be an object")]
    [InlineData("""{"process":1,"key":"k","op":"get","call":1,"return":2,"outcome":"ok","result":{"revision":-1}}""", "revision is -1; it must be 0 or greater")]
    [InlineData("""{"process":1,"key":"k","op":"get","call":1,"return":2,"outcome":"ok","result":{"found":false,"value":"a"}}""", "the result has a value although the answer was no")]
    [InlineData("""{"process":1,"key":"k","op":"get","call":1,"return":2,"outcome":"unknown","result":{"found":true}}""", "only an operation whose outcome is ok has a result")]
    [InlineData("""{"process":1,"key":"k","op":"increment","args":{"by":1},"call":1,"return":2,"outcome":"ok","result":{"value":"2"}}""", "result.value must be a whole number of 64 bits")]
    [InlineData("""{"process":1,"key":"l","op":"acquire","call":1,"return":2,"outcome":"fail"}""", "args.mode is missing")]
    [InlineData("""{"process":1,"key":"l","op":"acquire","args":{"mode":"read"},"call":1,"return":2,"outcome":"fail"}""", "args.mode is read; it must be one of exclusive, shared, permit")]
    [InlineData("""{"process":1,"key":"l","op":"acquire","args":{"mode":"permit"},"call":1,"return":2,"outcome":"fail"}""", "args.permits is missing")]
    [InlineData("""{"process":1,"key":"l","op":"acquire","args":{"mode":"permit","permits":0},"call":1,"return":2,"outcome":"fail"}""", "permits is 0; it must be 1 to 10000")]
    [InlineData("""{"process":1,"key":"l","op":"acquire","args":{"mode":"shared","permits":1},"call":1,"return":2,"outcome":"fail"}""", "args.permits is no field of this operation")]
    [InlineData("""{"process":1,"key":"l","op":"acquire","args":{"mode":"shared"},"call":1,"return":2,"outcome":"ok"}""", "the lock was granted, so token must be given")]
    [InlineData("""{"process":1,"key":"l","op":"acquire","args":{"mode":"shared"},"call":1,"return":2,"outcome":"ok","result":{"token":0}}""", "token is 0; it must be 1 or greater")]
    [InlineData("""{"process":1,"key":"l","op":"acquire","args":{"mode":"shared"},"call":1,"return":2,"outcome":"ok","result":{"token":1,"until":1}}""", "until is 1, before the return at 2")]
    [InlineData("""{"process":1,"key":"l","op":"acquire","args":{"mode":"shared"},"call":1,"return":2,"outcome":"ok","result":{"token":1,"revision":1}}""", "result.revision is no field of this operation")]
    [InlineData("""{"process":1,"key":"l","op":"acquire","args":{"mode":"shared"},"call":1,"return":2,"outcome":"ok","result":{"granted":false,"token":1}}""", "the result has a token or its end although the answer was no")]
    [InlineData("""{"process":1,"key":"l","op":"acquire","args":{"mode":"shared"},"call":1,"return":2,"outcome":"fail","result":{"token":1}}""", "only an operation whose outcome is ok has a result")]
    [InlineData("""{"process":1,"key":"l","op":"acquire","args":{"mode":"shared","fence":{"lock":"l","token":1}},"call":1,"return":2,"outcome":"fail"}""", "args.fence is no field of this operation")]
    [InlineData("""{"process":1,"key":"k","op":"delete","args":{"fence":1},"call":1,"return":2,"outcome":"fail"}""", "args.fence must be an object")]
    [InlineData("""{"process":1,"key":"k","op":"delete","args":{"fence":{}},"call":1,"return":2,"outcome":"fail"}""", "args.fence.lock is missing")]
    [InlineData("""{"process":1,"key":"k","op":"delete","args":{"fence":{"lock":"l"}},"call":1,"return":2,"outcome":"fail"}""", "args.fence.token is missing")]
    [InlineData("""{"process":1,"key":"k","op":"delete","args":{"fence":{"lock":"","token":1}},"call":1,"return":2,"outcome":"fail"}""", "fence names no lock")]
    [InlineData("""{"process":1,"key":"k","op":"delete","args":{"fence":{"lock":"l","token":0}},"call":1,"return":2,"outcome":"fail"}""", "the token of the fence is 0; it must be 1 or greater")]
    [InlineData("""{"process":1,"key":"k","op":"delete","args":{"fence":{"lock":"l","token":1,"owner":"o"}},"call":1,"return":2,"outcome":"fail"}""", "args.fence.owner is no field of this operation")]
    [InlineData("""{"process":1,"key":"k","op":"delete","args":{"fence":{"lock":"k","token":1}},"call":1,"return":2,"outcome":"fail"}""", "fence names k, which is a key; it must name a lock")]
    public void Bad_lines_are_named(string line, string expected)
    {
        HistoryException error = Assert.Throws<HistoryException>(() => History.Of(
            HistoryReader.Read(new StringReader($"{Good.Replace("\"process\":1", "\"process\":2")}\n{line}\n"))));
        Assert.Equal(2, error.Line);
        Assert.StartsWith("line 2: ", error.Message, StringComparison.Ordinal);
        Assert.Contains(expected, error.Message, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("\"call\":2,\"return\":3", null)]
    [InlineData("\"call\":1,\"return\":2", "process 1 has two operations at a time: the one called at 1 and another one of line 1, which ran from 1 to 2")]
    [InlineData("\"call\":0,\"return\":2", "process 1 has two operations at a time: the one called at 1 and another one of line 1, which ran from 0 to 2")]
    [InlineData("\"call\":0,\"return\":1", null)]
    public void One_operation_at_a_time_for_each_process(string times, string? expected)
    {
        string[] lines = [Good, Good.Replace("\"call\":1,\"return\":2", times).Replace("\"k\"", "\"other\"")];
        HistoryException? error = (HistoryException?)Record.Exception(() => History.Of(Read(string.Join('\n', lines))));
        Assert.Equal(expected is null ? null : $"line 2: {expected}", error?.Message);
    }

    [Fact]
    public void A_process_that_never_got_its_answer_does_nothing_more()
    {
        HistoryOperation[] operations = [Set(1, 0, 1, "a").Unanswered(), Get(1, 20, 30, "a")];
        Assert.Equal(
            "process 1 has two operations at a time: the one called at 20000000 and another one, which never returned",
            Assert.Throws<HistoryException>(() => History.Of(operations)).Message);
        History.Of([operations[0] with { ReturnNs = 20_000_000 }, operations[1]]);
    }

    [Fact]
    public void A_key_has_at_most_300_operations_that_may_have_happened()
    {
        List<HistoryOperation> operations =
            [.. Enumerable.Range(0, 301).Select(i => Set(1, i, i + 1, "a") with { Line = i + 1 })];
        HistoryException error = Assert.Throws<HistoryException>(() => History.Of(operations));
        Assert.Equal(
            "line 301: key k has more than 300 operations; retire a key after so many and go on with a new one",
            error.Message);
        Assert.Single(History.Of([.. operations.Take(300), operations[300].Failed()]).Keys);
    }

    [Fact]
    public void Bytes_that_are_no_text_are_refused()
    {
        using StreamReader source = new(
            new MemoryStream([.. Encoding.ASCII.GetBytes(Good + "\n"), 0xFF, (byte)'\n']), HistoryReader.Encoding);
        HistoryException error = Assert.Throws<HistoryException>(() => HistoryReader.Read(source).ToList());
        Assert.Contains("no UTF-8", error.Message, StringComparison.Ordinal);
    }

    [Fact]
    public void Lines_are_read_when_they_are_asked_for()
    {
        IEnumerable<HistoryOperation> operations = HistoryReader.Read(new StringReader(Good + "\nnonsense\n"));
        Assert.Equal(1, operations.First().Line);
        Assert.Throws<HistoryException>(() => operations.Count());
    }

    private static OperationResult ResultOf(string result) =>
        Assert.Single(Read(Good[..^1] + $",\"result\":{result}}}")).Result;

    private static List<HistoryOperation> Read(string text) => [.. HistoryReader.Read(new StringReader(text))];

    private static string Lines(IEnumerable<HistoryOperation> operations)
    {
        using StringWriter target = new(CultureInfo.InvariantCulture);
        HistoryWriter lines = new(target);
        foreach (HistoryOperation operation in operations)
        {
            lines.Write(operation);
        }

        return target.ToString();
    }
}
