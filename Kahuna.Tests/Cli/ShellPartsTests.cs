using System.CommandLine;
using Kahuna.Cli;
using Kahuna.Cli.Commands;
using Kahuna.Cli.Completion;
using Kahuna.Cli.Connecting;
using Kahuna.Cli.Results;
using Kahuna.Cli.Shell;
using Kahuna.Cli.Terminal;

namespace Kahuna.Tests.Cli;

/// <summary>The parts of the prompt: the options that hold for all lines, completed words, and interrupts.</summary>
public sealed class ShellPartsTests
{
    private const string Cluster = "--connect https://a:8082";

    [Theory]
    [InlineData("", "get a", "get a")]
    [InlineData("-c https://a:8082 -o json", "get a", $"--output json {Cluster} get a")]
    [InlineData("-c https://a:8082 -o json", "get a -o table", $"{Cluster} get a -o table")]
    [InlineData("-c https://a:8082 -o json", "get a --output=table", $"{Cluster} get a --output=table")]
    [InlineData("-c https://a:8082 --user ann --password-file p", "get a -c https://b:8082", "get a -c https://b:8082")]
    [InlineData("-c https://a:8082 --token-file t", "get a --connect=https://b:8082", "get a --connect=https://b:8082")]
    [InlineData("--context shop --insecure --trusted-ca ca", "get a --context other", "get a --context other")]
    [InlineData("--context shop --timeout 3s", "get a --context other", "--timeout 3s get a --context other")]
    [InlineData("--context shop", "get -- --context", "--context shop get -- --context")]
    [InlineData("--context shop --user ann", "get a --user bob", "--context shop get a --user bob")]
    public void Options_of_the_shell_hold_for_its_lines(string shell, string line, string expected) =>
        Assert.Equal(expected, string.Join(' ', Given(shell).Before(line.Split(' '))));

    [Theory]
    [InlineData("", 0, "completion context count del")]
    [InlineData("he", 0, "help ")]
    [InlineData("ex", 0, "ex")]
    [InlineData("get co", 4, "config/")]
    [InlineData("get config/l", 4, "config/limit ")]
    [InlineData("get sp", 4, "\"space in it\" ")]
    [InlineData("get 'sp", 4, "\"space in it\" ")]
    [InlineData("get \"space in", 4, "\"space in it\" ")]
    [InlineData("get q", 4, "\"q\\\"uote\" ")]
    [InlineData("get esc", 4, "\"esc\\x1b[2J\" ")]
    [InlineData("get smile", 4, "smile-")]
    [InlineData("get none", 0, "")]
    [InlineData("get config/limit ", 0, "")]
    [InlineData("get 'a\\", 0, "")]
    [InlineData("get a --outp", 6, "--output ")]
    [InlineData("kahuna ge", 7, "get ")]
    public async Task Words_are_completed_as_they_stand_in_a_line(string line, int start, string common)
    {
        CommandTree tree = new();
        ShellCompletion completion = new(Given(""), tree.Parse, new Names());
        WordChoice choice = await completion.CompleteAsync(line, default).WaitAsync(LastNet.Span);
        Assert.Equal(start, choice.Start);
        if (line.Length == 0)
        {
            Assert.Equal([], common.Split(' ').Except(choice.Words));
            Assert.Equal([], ShellSession.Words.Except(choice.Words));
            return;
        }

        Assert.Equal(common, choice.Common);
    }

    [Fact]
    public async Task Completion_ends_when_the_person_gives_up()
    {
        using CancellationTokenSource gone = new();
        CommandTree tree = new();
        Task<WordChoice> choice = new ShellCompletion(Given(""), tree.Parse, new Names(isSilent: true))
            .CompleteAsync("get a", gone.Token);
        await gone.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => choice.WaitAsync(LastNet.Span));
    }

    [Fact]
    public void An_interrupt_ends_the_command_of_a_line_and_a_second_one_is_left_to_the_system()
    {
        using Interrupts interrupts = new();
        using (Interrupts.LineStop first = interrupts.BeginLine())
        {
            Assert.True(interrupts.Interrupt());
            Assert.True(first.Token.IsCancellationRequested);
            Assert.False(interrupts.Interrupt());
            Assert.False(interrupts.Process.IsCancellationRequested);
        }

        using (Interrupts.LineStop second = interrupts.BeginLine())
        {
            Assert.False(second.Token.IsCancellationRequested);
            Assert.True(interrupts.Terminate());
            Assert.True(second.Token.IsCancellationRequested);
            Assert.True(interrupts.Process.IsCancellationRequested);
            Assert.False(interrupts.Terminate());
        }

        Assert.False(interrupts.Interrupt());
    }

    [Fact]
    public void Without_a_command_an_interrupt_ends_the_process()
    {
        using Interrupts interrupts = new();
        interrupts.BeginLine().Dispose();
        Assert.True(interrupts.Interrupt());
        Assert.True(interrupts.Process.IsCancellationRequested);
        Assert.False(interrupts.Interrupt());
    }

    private static GivenOptions Given(string options)
    {
        CommandTree tree = new();
        CliEnvironment environment = new CliTool().Around([], Stream.Null, TextWriter.Null);
        ParseResult parsed = tree.Parse(
            [.. options.Split(' ', StringSplitOptions.RemoveEmptyEntries), "get", "a"]);
        return new GivenOptions(new CommandCall(
            parsed, tree.Connection, environment, new ClientSource(environment),
            new Output(environment, OutputFormat.Table), default));
    }

    private sealed class Names(bool isSilent = false) : IKeyNames
    {
        private static readonly string[] s_all =
        [
            "config/limit", "config/owner", "space in it", "q\"uote", "esc\u001b[2J", "smile-\U0001F600",
            "smile-\U0001F601",
        ];

        public Task<IReadOnlyList<string>> FindAsync(ParseResult parsed, string word) => isSilent
            ? new TaskCompletionSource<IReadOnlyList<string>>().Task
            : Task.FromResult<IReadOnlyList<string>>(
                [.. s_all.Where(name => name.StartsWith(word, StringComparison.Ordinal))]);
    }
}
