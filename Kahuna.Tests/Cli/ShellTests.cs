using Kahuna.Cli.Errors;
using Kahuna.Cli.Shell;
using Kahuna.Cli.Terminal;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Cli;

/// <summary>The prompt: keys in, lines out; its history; and lines from standard input.</summary>
public sealed class ShellTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Theory]
    [InlineData("get", "get")]
    [InlineData("ab<Left>x", "axb")]
    [InlineData("ab<Home>x<End>y", "xaby")]
    [InlineData("one two<DeleteWord>3", "one 3")]
    [InlineData("one two<Home><DeleteToEnd>3", "3")]
    [InlineData("one<Left><DeleteToStart>", "e")]
    [InlineData("漢字<Backspace>é<Left><Delete>", "漢")]
    [InlineData("😀<Backspace>x", "x")]
    [InlineData("a<Up>", "newer")]
    [InlineData("a<Up><Up>", "older")]
    [InlineData("a<Up><Up><Down><Down>b", "ab")]
    [InlineData("<Search>old", "older")]
    [InlineData("gone<Interrupt>", "")]
    [InlineData("<EndOfInput>", null)]
    public async Task Keys_make_a_line(string keys, string? line)
    {
        History history = History.InMemory();
        history.Add("older", isSaved: true);
        history.Add("newer", isSaved: true);
        FakeTerminal terminal = new(keys);
        LineEditor editor = new(terminal, history, new NoWords());
        Assert.Equal(line, await editor.ReadAsync("> ", default).WaitAsync(LastNet.Span));
    }

    [Fact]
    public async Task A_paste_does_not_run_and_cannot_act_on_the_terminal()
    {
        FakeTerminal terminal = new("a\nb\u001b[2J\u202e");
        LineEditor editor = new(terminal, History.InMemory(), new NoWords());
        string? line = await editor.ReadAsync("> ", default).WaitAsync(LastNet.Span);
        Assert.Equal("a b[2J\u202e", line);
        Assert.DoesNotContain("\u001b[2J", terminal.Screen, StringComparison.Ordinal);
        Assert.DoesNotContain('\u202e', terminal.Screen);
    }

    [Fact]
    public void The_history_is_its_owners_and_has_no_secrets()
    {
        string path = Path.Combine(_directory.Path, "history");
        History first = History.Open(path);
        Assert.Null(first.Problem);
        for (int i = 0; i < History.Most + 5; i++)
        {
            first.Add($"get k{i}", isSaved: true);
        }

        first.Add("user create ann", isSaved: false);
        Assert.True(CliTool.IsForItsOwner(path));
        History second = History.Open(path);
        Assert.Equal(History.Most, second.Lines.Count);
        Assert.Equal($"get k{History.Most + 4}", second.Lines[^1]);
        Assert.Equal(History.Most, File.ReadAllLines(path).Length);
    }

    [Fact]
    public async Task Lines_of_standard_input_are_carried_out_until_one_fails()
    {
        CliTool tool = new() { Variables = { ["KAHUNA_CONTEXTS"] = Path.Combine(_directory.Path, "contexts.json") } };
        const string Lines = "context add shop -c https://a:8082\ngte x\ncontext list\nexit\nnonsense";
        CliResult all = await tool.RunAsync(["shell"], Lines, default);
        Assert.Equal(ExitCode.Done, all.ExitCode);
        all.Shows("shop");
        all.Tells("Did you mean 'get'?");
        CliResult fast = await tool.RunAsync(["shell", "--fail-fast"], "gte x\ncontext list", default);
        fast.Ended(ExitCode.Usage).Tells("gte");
        Assert.Empty(fast.Output);
        (await tool.RunAsync(["shell", "--fail-fast"], "get 'a", default)).Ended(ExitCode.Usage).Tells("Line 1: ");
        (await tool.RunAsync(["shell", "--fail-fast"], "tx", default)).Ended(ExitCode.Usage)
            .Tells("belongs to the shell");
    }

    [Theory]
    [InlineData("a\\ b", "a b")]
    [InlineData("'a\\b' \"c\\\"d\"", "a\\b|c\"d")]
    [InlineData("\\'a", "'a")]
    public void A_backslash_keeps_the_next_character(string line, string words) =>
        Assert.Equal(words, string.Join('|', QuotedWords.TextOf(line, isShell: true)));

    private sealed class NoWords : IWordCompletion
    {
        public Task<WordChoice> CompleteAsync(string line, CancellationToken ct) => Task.FromResult(WordChoice.None);
    }
}
