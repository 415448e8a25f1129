using System.Text;
using Kahuna.Tests.Tidy;
using Kahuna.Wire.Scripts;

namespace Kahuna.Tests.Scripts;

/// <summary>Every script of docs/scripts does what it says of itself.</summary>
public sealed class ExampleScriptTests
{
    private const string Folder = "docs/scripts/";
    private const int LinesMax = 30;

    private readonly ExampleStore _store = new();

    public static TheoryData<string> Files =>
        [.. Repository.Files.Where(file => file.StartsWith(Folder, StringComparison.Ordinal))];

    [Theory]
    [MemberData(nameof(Files))]
    public void An_example_is_short_and_described(string file)
    {
        string[] lines = Repository.Lines(file);
        Assert.InRange(lines.Length, 1, LinesMax);
        Assert.StartsWith("# ", lines[0], StringComparison.Ordinal);
        Assert.All(lines, line => Assert.InRange(line.Length, 0, 120));
        Assert.Contains($"](scripts/{Path.GetFileName(file)})", Page(), StringComparison.Ordinal);
        Assert.Contains($"\"{Path.GetFileName(file)}\"", File.ReadAllText(
            Repository.FullPath("Kahuna.Tests/Scripts/ExampleScriptTests.cs")), StringComparison.Ordinal);
    }

    [Fact]
    public void A_transfer_moves_money()
    {
        _store["accounts/ann"] = "100";
        _store["accounts/bob"] = "7";
        Assert.Equal(70, Transfer("accounts/ann", "accounts/bob", 30).AsInteger);
        Assert.Equal(("70", "37"), (_store["accounts/ann"], _store["accounts/bob"]));
        Assert.Equal(0, Transfer("accounts/ann", "accounts/bob", 70).AsInteger);
        Assert.Equal(("0", "107"), (_store["accounts/ann"], _store["accounts/bob"]));
    }

    [Theory]
    [InlineData("accounts/ann", "accounts/bob", 101, "accounts/ann has 100, which is less than 101")]
    [InlineData("accounts/ann", "accounts/bob", 0, "the amount must be above 0")]
    [InlineData("accounts/ann", "accounts/bob", -5, "the amount must be above 0")]
    [InlineData("accounts/ann", "accounts/ann", 5, "the two accounts are the same one")]
    [InlineData("accounts/ann", "accounts/eve", 5, "there is no account accounts/eve")]
    [InlineData("accounts/eve", "accounts/ann", 5, "there is no account accounts/eve")]
    [InlineData("accounts/ann", "other/bob", 5, "is not in the bucket of")]
    public void A_transfer_that_cannot_be_made_changes_nothing(string from, string to, int amount, string expected)
    {
        _store["accounts/ann"] = "100";
        _store["accounts/bob"] = "7";
        _store["other/bob"] = "7";
        InvalidOperationException failure = Assert.Throws<InvalidOperationException>(() => Transfer(from, to, amount));
        Assert.Contains(expected, failure.Message, StringComparison.Ordinal);
        Assert.Equal(
            ("100", "7", "7"), (_store["accounts/ann"], _store["accounts/bob"], _store["other/bob"]));
    }

    [Fact]
    public void A_rate_limiter_allows_its_calls_in_each_window()
    {
        Assert.Equal([true, true, true, false, false], Calls(5));
        _store.NowMs += 999;
        Assert.Equal([false], Calls(1));
        _store.NowMs += 1;
        Assert.Equal([true, true, true, false], Calls(4));
        Assert.False(Allow(limit: 0, "limits/other"));

        bool[] Calls(int count) => [.. Enumerable.Range(0, count).Select(_ => Allow(limit: 3, "limits/ann"))];
    }

    [Fact]
    public void A_rate_limiter_keeps_the_end_of_its_window()
    {
        Assert.True(Allow(2, "limits/ann"));
        _store.NowMs += 600;
        Assert.True(Allow(2, "limits/ann"));
        _store.NowMs += 399;
        Assert.False(Allow(2, "limits/ann"));
        _store.NowMs += 1;
        Assert.True(Allow(2, "limits/ann"));
    }

    [Fact]
    public void A_counter_counts()
    {
        for (int i = 1; i <= 12; i++)
        {
            Assert.Equal(i, Run("counter.4gl", ("key", "visits")).AsInteger);
        }

        Assert.Equal("12", _store["visits"]);
    }

    [Fact]
    public void A_counter_that_holds_no_number_stays_as_it_is()
    {
        _store["visits"] = "many";
        Assert.Throws<InvalidOperationException>(() => Run("counter.4gl", ("key", "visits")));
        Assert.Equal("many", _store["visits"]);
    }

    [Fact]
    public void A_queue_gives_its_items_in_order()
    {
        Assert.Equal(ScriptValueKind.Null, Pop().Kind);
        for (int i = 1; i <= 12; i++)
        {
            Assert.Equal(i, Push($"item {i}").AsInteger);
        }

        for (int i = 1; i <= 12; i++)
        {
            Assert.Equal($"item {i}", Text(Pop()));
        }

        Assert.Equal(ScriptValueKind.Null, Pop().Kind);
        Assert.Equal(["jobs", "jobs/popped"], _store.Keys);
        Assert.Equal(13, Push("one more").AsInteger);
        Assert.Equal("one more", Text(Pop()));
    }

    [Fact]
    public void An_item_of_a_queue_may_be_bytes()
    {
        byte[] item = [0xff, 0, 0xfe];
        RunWith("queue-push.4gl", new("queue", ScriptValue.Of("jobs")), new("item", ScriptValue.Of(item.AsMemory())));
        ScriptValue taken = Pop();
        Assert.Equal(ScriptValueKind.Entry, taken.Kind);
        Assert.Equal(item, taken.Value.AsBytes.ToArray());
    }

    [Fact]
    public void A_queue_cannot_have_a_slash_in_its_name()
    {
        InvalidOperationException failure = Assert.Throws<InvalidOperationException>(
            () => Run("queue-push.4gl", ("queue", "team/jobs"), ("item", "a")));
        Assert.Contains("bucket", failure.Message, StringComparison.Ordinal);
        Assert.Empty(_store.Keys);
    }

    private static string Page() => File.ReadAllText(Repository.FullPath("docs/scripts.md"));

    private static string Text(ScriptValue entry) => entry.Value.AsString;

    private ScriptValue Transfer(string from, string to, long amount) => RunWith(
        "transfer.4gl",
        new("from", ScriptValue.Of(from)), new("to", ScriptValue.Of(to)), new("amount", ScriptValue.Of(amount)));

    private bool Allow(long limit, string key) => RunWith(
        "rate-limiter.4gl",
        new("key", ScriptValue.Of(key)),
        new("limit", ScriptValue.Of(limit)),
        new("window", ScriptValue.Of(1_000L))).AsBool;

    private ScriptValue Push(string item) => Run("queue-push.4gl", ("queue", "jobs"), ("item", item));

    private ScriptValue Pop() => Run("queue-pop.4gl", ("queue", "jobs"));

    private ScriptValue Run(string file, params (string Name, string Value)[] parameters) =>
        RunWith(file, [.. parameters.Select(pair => new ScriptParameter(pair.Name, ScriptValue.Of(pair.Value)))]);

    private ScriptValue RunWith(string file, params ScriptParameter[] parameters) =>
        _store.Run(File.ReadAllText(Repository.FullPath(Folder + file), Encoding.UTF8), parameters);
}
