using System.Text.Json;
using Kahuna.Cli.Errors;

namespace Kahuna.Tests.Cli;

/// <summary>Sequences, transactions, scripts and watches, on a real cluster.</summary>
[Collection(CliClusterCollection.Name)]
public sealed class SequenceScriptWatchTests(CliCluster cluster)
{
    private readonly CliTool _tool = cluster.Tool();

    [Fact]
    public async Task Sequences_give_numbers()
    {
        (await _tool.RunAsync("sequence", "create", "s/one", "--initial", "10", "--max", "100")).Done();
        (await _tool.RunAsync("sequence", "create", "s/one")).Ended(ExitCode.NotThere);
        Assert.Equal("10\n", (await _tool.RunAsync("sequence", "next", "s/one")).Done().Output);
        JsonElement block = (await _tool.RunAsync("sequence", "reserve", "s/one", "5", "-o", "json")).Done().Json;
        Assert.Equal((11, 15), (block.GetProperty("first").GetInt32(), block.GetProperty("last").GetInt32()));
        string[] key = ["--idempotency-key", "import"];
        string once = (await _tool.RunAsync(["sequence", "next", "s/one", .. key])).Done().Output;
        Assert.Equal(once, (await _tool.RunAsync(["sequence", "next", "s/one", .. key])).Done().Output);
        (await _tool.RunAsync("sequence", "update", "s/one", "--increment", "10", "--cycle", "true")).Done();
        JsonElement found = (await _tool.RunAsync("sequence", "get", "s/one", "-o", "json")).Done().Json;
        Assert.Equal((10, true), (found.GetProperty("increment").GetInt32(), found.GetProperty("cycle").GetBoolean()));
        (await _tool.RunAsync("sequence", "list", "s/")).Done().Shows("s/one");
        (await _tool.RunAsync("sequence", "delete", "s/one")).Done();
        (await _tool.RunAsync("sequence", "get", "s/one")).Ended(ExitCode.NotThere);
        (await _tool.RunAsync("sequence", "next", "s/one")).Ended(ExitCode.NotThere);
        (await _tool.RunAsync("sequence", "delete", "s/one")).Ended(ExitCode.NotThere);
    }

    [Fact]
    public async Task A_transaction_takes_effect_as_a_whole()
    {
        const string Text = """
            # made once
            if absent t/a
            then set t/a "two words\n" 1h
            incr t/b 5
            else get t/a
            """;
        (await _tool.RunAsync(["tx"], Text, default)).Done().Shows("held");
        Assert.Equal("two words\n", (await _tool.RunAsync("get", "t/a")).Done().Output);
        CliResult second = (await _tool.RunAsync(["tx", "-", "-o", "json"], Text, default)).Ended(ExitCode.NotThere);
        Assert.Equal("two words\n", second.Json.GetProperty("results")[0].GetProperty("result").GetString());
        Assert.Equal("5", (await _tool.RunAsync("get", "t/b")).Done().Output);
        (await _tool.RunAsync("tx", "--line", "if value t/b 5", "--line", "del t/b", "--line", "if revision t/a 1"))
            .Done();
        (await _tool.RunAsync("get", "t/b")).Ended(ExitCode.NotThere);
        (await _tool.RunAsync(["tx"], "get a\nfetch b", default)).Ended(2).Tells("Line 2");
        (await _tool.RunAsync(["tx"], "set a \"open", default)).Ended(ExitCode.Usage);
        (await _tool.RunAsync(["tx"], "# nothing", default)).Ended(ExitCode.Usage);
        (await _tool.RunAsync(["tx", "/no/such/file"], "", default)).Ended(ExitCode.Usage);
    }

    [Fact]
    public async Task A_transaction_may_be_JSON()
    {
        const string Json = """
            {"if":[{"key":"j/a","exists":false}],
             "then":[{"set":"j/a","valueBase64":"aGk=","ttl":"1h"},{"increment":"j/b","by":5}],
             "else":[{"get":"j/a"}]}
            """;
        (await _tool.RunAsync(["tx"], Json, default)).Done().Shows("held");
        CliResult second = (await _tool.RunAsync(["tx", "-o", "json"], Json, default)).Ended(ExitCode.NotThere);
        Assert.Equal("hi", second.Json.GetProperty("results")[0].GetProperty("result").GetString());
        Assert.Equal("5", (await _tool.RunAsync("get", "j/b")).Done().Output);
        const string Wrong = """{"then":[{"delete":"j/b"},{"set":"j/c","value":"x","ttl":"soon"}]}""";
        (await _tool.RunAsync(["tx"], Wrong, default)).Ended(ExitCode.Usage).Tells("then[1].ttl: ");
        Assert.Equal("5", (await _tool.RunAsync("get", "j/b")).Done().Output);
    }

    [Fact]
    public async Task A_script_runs_with_parameters()
    {
        string[] words = ["script", "-p", "key=x/k", "-p", "by:=41", "--text", "set @key @by + 1 return get @key"];
        Assert.Equal("42\n", (await _tool.RunAsync(words)).Done().Output);
        const string Mixed = "return [1, \"a\", null, true, 1.5]";
        CliResult mixed = (await _tool.RunAsync(["script", "-o", "json"], Mixed, default)).Done();
        JsonElement result = mixed.Json.GetProperty("result");
        Assert.Equal("""[1,"a",null,true,1.5]""", JsonSerializer.Serialize(result));
        (await _tool.RunAsync(["script"], "retur", default)).Ended(2).Tells("line 1");
        (await _tool.RunAsync(["script"], "throw \"no\"", default)).Ended(ExitCode.Refused);
        (await _tool.RunAsync("script", "--text", "return 1", "-p", "x")).Ended(ExitCode.Usage);
        (await _tool.RunAsync("script", "--text", "return @x", "-p", "x:=[")).Ended(ExitCode.Usage);
    }

    [Fact]
    public async Task A_watch_goes_on_behind_a_position()
    {
        (await _tool.RunAsync("set", "w/pos/a", "1")).Done();
        JsonElement[] state = Lines(await _tool.RunAsync("watch", "w/pos/", "--state", "--count", "2", "-o", "jsonl"));
        Assert.Equal("current", state[0].GetProperty("event").GetString());
        Assert.Equal("w/pos/a", state[0].GetProperty("key").GetString());
        string position = state[1].GetProperty("position").GetString()!;
        (await _tool.RunAsync("set", "w/pos/a", "2")).Done();
        (await _tool.RunAsync("del", "w/pos/a")).Done();
        JsonElement[] changes = Lines(await _tool.RunAsync(
            "watch", "w/pos/", "--from", position, "--previous", "--count", "2", "-o", "jsonl"));
        Assert.Equal(["set", "deleted"], changes.Select(static change => change.GetProperty("event").GetString()));
        Assert.Equal(["1", "2"], changes.Select(static change => change.GetProperty("previous").GetString()));
        (await _tool.RunAsync("watch", "w/pos/", "--from", "nonsense")).Ended(ExitCode.Usage);
    }

    [Fact]
    public async Task An_interrupted_watch_ends_with_130()
    {
        (await _tool.RunAsync("set", "w/stop", "1")).Done();
        using CancellationTokenSource stop = new();
        using FirstWrite output = new(stop.Cancel);
        (int exitCode, _) = await _tool.RunAsync(["watch", "w/stop", "--state", "-o", "jsonl"], [], output, stop.Token);
        Assert.Equal(ExitCode.Interrupted, exitCode);
    }

    [Fact]
    public async Task A_reader_that_has_gone_ends_the_command()
    {
        (await _tool.RunAsync("set", "w/gone", "1")).Done();
        using FirstWrite output = new(static () => throw new IOException("Broken pipe", 32));
        (int exitCode, StringWriter error) = await _tool.RunAsync(
            ["watch", "w/gone", "--state", "-o", "jsonl"], [], output, default);
        Assert.Equal((ExitCode.Done, ""), (exitCode, error.ToString()));
    }

    private static JsonElement[] Lines(CliResult result) =>
    [
        .. result.Done().Output.Split('\n', StringSplitOptions.RemoveEmptyEntries)
            .Select(static line => JsonDocument.Parse(line).RootElement),
    ];

    /// <summary>Does something at the first write.</summary>
    private sealed class FirstWrite(Action act) : MemoryStream
    {
        public override void Write(ReadOnlySpan<byte> buffer)
        {
            act();
            base.Write(buffer);
        }

        public override void Write(byte[] buffer, int offset, int count)
        {
            act();
            base.Write(buffer, offset, count);
        }
    }
}
