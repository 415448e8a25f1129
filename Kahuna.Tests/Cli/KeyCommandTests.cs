using System.Text.Json;
using Kahuna.Cli;
using Kahuna.Cli.Completion;
using Kahuna.Cli.Errors;
using Kahuna.Tests.Client;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Cli;

/// <summary>The commands that read and write keys, on a real cluster.</summary>
[Collection(CliClusterCollection.Name)]
public sealed class KeyCommandTests(CliCluster cluster)
{
    private readonly CliTool _tool = cluster.Tool();

    [Fact]
    public async Task A_key_is_written_read_and_deleted()
    {
        CliResult set = (await _tool.RunAsync("set", "keys/a", "one")).Done();
        Assert.Equal("revision 1\n", set.Output);
        Assert.Equal("one", (await _tool.RunAsync("get", "keys/a")).Done().Output);
        Assert.Equal("yes, at revision 1\n", (await _tool.RunAsync("exists", "keys/a")).Done().Output);
        (await _tool.RunAsync("del", "keys/a")).Done();
        (await _tool.RunAsync("get", "keys/a")).Ended(1).Tells("There is no key 'keys/a'");
        (await _tool.RunAsync("exists", "keys/a")).Ended(ExitCode.NotThere);
        (await _tool.RunAsync("del", "keys/a")).Ended(ExitCode.NotThere);
        (await _tool.RunAsync("extend", "keys/a", "5m")).Ended(ExitCode.NotThere);
    }

    [Fact]
    public async Task Conditions_decide_and_the_exit_code_says_so()
    {
        (await _tool.RunAsync("set", "keys/c", "1", "--if-absent")).Done();
        (await _tool.RunAsync("set", "keys/c", "2", "--if-absent")).Ended(ExitCode.NotThere);
        (await _tool.RunAsync("set", "keys/c", "2", "--if-value", "9")).Ended(ExitCode.NotThere);
        (await _tool.RunAsync("set", "keys/c", "2", "--if-value", "1")).Done();
        (await _tool.RunAsync("set", "keys/c", "3", "--if-revision", "1")).Ended(ExitCode.NotThere);
        (await _tool.RunAsync("set", "keys/c", "3", "--if-revision", "2", "--ttl", "1h")).Done();
        (await _tool.RunAsync("set", "keys/none", "3", "--if-present")).Ended(ExitCode.NotThere);
        JsonElement found = (await _tool.RunAsync("get", "keys/c", "-o", "json")).Done().Json;
        Assert.Equal(("3", 3), (found.GetProperty("value").GetString(), found.GetProperty("revision").GetInt32()));
        Assert.InRange(found.GetProperty("remainingTtlMs").GetInt64(), 1, 3_600_000);
        (await _tool.RunAsync("extend", "keys/c", "0")).Done();
        found = (await _tool.RunAsync("get", "keys/c", "-o", "json")).Done().Json;
        Assert.Equal(JsonValueKind.Null, found.GetProperty("remainingTtl").ValueKind);
        Assert.Equal("2", (await _tool.RunAsync("get", "keys/c", "--revision", "2")).Done().Output);
    }

    [Fact]
    public async Task Increments_take_negative_numbers()
    {
        Assert.Equal("-5\n", (await _tool.RunAsync("incr", "keys/n", "--by", "-5")).Done().Output);
        Assert.Equal("-4\n", (await _tool.RunAsync("incr", "keys/n")).Done().Output);
        (await _tool.RunAsync("set", "keys/word", "text")).Done();
        (await _tool.RunAsync("incr", "keys/word")).Ended(ExitCode.Refused);
    }

    [Fact]
    public async Task A_value_of_a_mebibyte_of_any_bytes_goes_in_and_out_unchanged()
    {
        byte[] value = [.. Enumerable.Range(0, 1 << 20).Select(static i => (byte)(i * 31))];
        using MemoryStream none = new();
        Assert.Equal(0, (await _tool.RunAsync(["set", "keys/large", "-"], value, none, default)).ExitCode);
        Assert.Equal(value, (await _tool.RunAsync("get", "keys/large")).Done().Bytes);
        JsonElement found = (await _tool.RunAsync("get", "keys/large", "-o", "json")).Done().Json;
        Assert.Equal(value, found.GetProperty("valueBase64").GetBytesFromBase64());
        string base64 = (await _tool.RunAsync("get", "keys/large", "--base64")).Done().Output;
        Assert.Equal(value, Convert.FromBase64String(base64));
        string scanned = (await _tool.RunAsync("scan", "keys/large")).Done().Output;
        Assert.InRange(scanned.Length, 100, 600);
        (await _tool.RunAsync("set", "keys/large", "AP8=", "--base64")).Done();
        Assert.Equal([0, 255], (await _tool.RunAsync("get", "keys/large")).Done().Bytes);
    }

    [Fact]
    public async Task The_null_value_is_none_of_the_empty_ones()
    {
        (await _tool.RunAsync("set", "keys/null", "--null")).Done();
        JsonElement found = (await _tool.RunAsync("get", "keys/null", "-o", "json")).Done().Json;
        Assert.Equal(JsonValueKind.Null, found.GetProperty("value").ValueKind);
        (await _tool.RunAsync("set", "keys/null", "")).Done();
        found = (await _tool.RunAsync("get", "keys/null", "-o", "json")).Done().Json;
        Assert.Equal("", found.GetProperty("value").GetString());
        (await _tool.RunAsync("set", "keys/null")).Ended(ExitCode.Usage);
        (await _tool.RunAsync("set", "keys/null", "x", "--null")).Ended(ExitCode.Usage);
    }

    [Fact]
    public async Task Scans_list_in_order_in_every_form()
    {
        foreach (string name in (string[])["b", "a", "c"])
        {
            (await _tool.RunAsync("set", $"keys/scan/{name}", name.ToUpperInvariant())).Done();
        }

        string[] table = (await _tool.RunAsync("scan", "keys/scan/")).Done().Output.Split('\n');
        Assert.Equal("KEY          REVISION  VALUE", table[0]);
        Assert.Equal("keys/scan/a  1         A", table[1]);
        JsonElement json = (await _tool.RunAsync("scan", "keys/scan/", "-o", "json")).Done().Json;
        Assert.Equal(["keys/scan/a", "keys/scan/b", "keys/scan/c"],
            json.EnumerateArray().Select(static entry => entry.GetProperty("key").GetString()));
        string[] lines = (await _tool.RunAsync("scan", "keys/scan/", "-o", "jsonl", "--descending", "--limit", "2"))
            .Done().Output.Split('\n', StringSplitOptions.RemoveEmptyEntries);
        Assert.Equal(
            ["C", "B"],
            lines.Select(static line => JsonDocument.Parse(line).RootElement.GetProperty("value").GetString()));
        Assert.Equal("3\n", (await _tool.RunAsync("count", "keys/scan/")).Done().Output);
        Assert.Equal("[]\n", (await _tool.RunAsync("scan", "keys/none/", "-o", "json")).Done().Output);
        Assert.Equal("3 deleted\n", (await _tool.RunAsync("del", "keys/scan/", "--prefix")).Done().Output);
        (await _tool.RunAsync("del", "", "--prefix")).Ended(ExitCode.Usage).Tells("--all");
    }

    [Fact]
    public async Task Names_and_values_cannot_act_on_the_terminal()
    {
        CliTool terminal = new() { IsTerminal = true };
        foreach ((string name, string value) in _tool.Variables)
        {
            terminal.Variables[name] = value;
        }

        string key = "keys/evil\u001b]0;title\u0007\n\u202e\u009b31m";
        (await _tool.RunAsync("set", key, "v\u001b[2J\ttab\nline")).Done();
        foreach (string[] words in (string[][])[["scan", "keys/evil"], ["get", key], ["get", key, "-o", "json"],
            ["exists", key, "-o", "jsonl"], ["watch", "keys/evil", "--state", "--count", "1"]])
        {
            string shown = (await terminal.RunAsync(words)).Done().Output
                .Replace("\u001b[1m", "", StringComparison.Ordinal)
                .Replace("\u001b[0m", "", StringComparison.Ordinal);
            Assert.DoesNotContain(shown, static letter => letter != '\n' && letter != '\t' && char.IsControl(letter));
            Assert.DoesNotContain('\u202e', shown);
        }

        (await terminal.RunAsync("scan", "keys/evil")).Done().Shows(@"keys/evil\x1b]0;title\x07\n\u{202e}\u{9b}31m");
        string missing = (await terminal.RunAsync("get", "keys/\u001b[31m\nnot there")).Ended(ExitCode.NotThere).Error;
        Assert.DoesNotContain('\u001b', missing);
        Assert.Equal("v\u001b[2J\ttab\nline", (await _tool.RunAsync("get", key)).Done().Output);
    }

    [Fact]
    public async Task Ephemeral_keys_are_other_keys()
    {
        (await _tool.RunAsync("set", "keys/level", "memory", "--ephemeral")).Done();
        (await _tool.RunAsync("get", "keys/level")).Ended(ExitCode.NotThere);
        Assert.Equal("memory", (await _tool.RunAsync("get", "keys/level", "--ephemeral")).Done().Output);
    }

    [Fact]
    public async Task Values_come_from_files_and_are_bounded()
    {
        using TemporaryDirectory directory = new();
        string path = directory.File("value", "from a file");
        (await _tool.RunAsync("set", "keys/file", "--value-file", path)).Done();
        Assert.Equal("from a file", (await _tool.RunAsync("get", "keys/file")).Done().Output);
        (await _tool.RunAsync(["set", "keys/file", "--value-file", "-"], "öß", default)).Done();
        Assert.Equal("öß", (await _tool.RunAsync("get", "keys/file")).Done().Output);
        using (FileStream file = File.OpenWrite(path))
        {
            file.SetLength(1L << 30);
        }

        (await _tool.RunAsync("set", "k", "--value-file", path)).Ended(ExitCode.Usage).Tells("more bytes");
        (await _tool.RunAsync("set", "k", "--value-file", path + "x")).Ended(ExitCode.Usage).Tells("does not exist");
        (await _tool.RunAsync("set", "k", "%", "--base64")).Ended(ExitCode.Usage).Tells("no base64");
    }

    [Fact]
    public async Task Names_of_keys_are_completed_from_the_cluster()
    {
        (await _tool.RunAsync("set", "keys/complete/me", "1")).Done();
        (await _tool.RunAsync("set", "keys/complete/too", "1")).Done();
        CommandTree tree = new();
        KeyNames names = new(tree.Connection, _tool.Around([], Stream.Null, TextWriter.Null))
        {
            Patience = LastNet.Call,
        };
        Completer completer = new(tree.Parse, names);
        string[] both = ["keys/complete/me", "keys/complete/too"];
        await OffersAsync(both, ["get", "keys/complete/"]);
        await OffersAsync(both[1..], ["del", "--if-value", "x", "keys/complete/t"]);
        Assert.Equal([], await completer.CompleteAsync(["set", "k", "keys/complete/"]));
        Assert.Equal([], await completer.CompleteAsync(["get", "k", "--timeout", "keys/complete/"]));
        await Wait.UntilAsync(async () => (await completer.CompleteAsync(["get", ""])).Any());

        // A node that is busy may refuse, and then there are no names.
        async Task OffersAsync(string[] expected, string[] words) =>
            await Wait.UntilAsync(async () => expected.SequenceEqual(await completer.CompleteAsync(words)));
    }
}
