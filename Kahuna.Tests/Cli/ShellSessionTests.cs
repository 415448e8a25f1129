using System.Net;
using System.Net.Sockets;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Cli;

/// <summary>The whole prompt: what its history keeps of secrets, and what Ctrl+C ends.</summary>
public sealed class ShellSessionTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    [Theory]
    [InlineData("context add shop -c https://a:8082 --password hunter2")]
    [InlineData("user create ann --password hunter2")]
    [InlineData("user create ann --password=hunter2")]
    [InlineData("user update ann --password hunter2")]
    [InlineData("get a --token hunter2")]
    [InlineData("kahuna whoami --Secret hunter2")]
    [InlineData(" get hunter2 --timeout 1ms")]
    [InlineData("get a --password 'hunter2")]
    public async Task A_line_with_a_secret_is_neither_saved_nor_offered_again(string line)
    {
        CliTool tool = Tool($"older words<Enter>{line}<Enter><Up><Enter>");
        CliResult result = await tool.RunAsync("shell");

        // The line before it comes back with the key for it, and runs once more.
        Assert.Equal(2, Count(result.Error, "'older' is no command"));
        Assert.DoesNotContain("hunter2", await HistoryAsync(), StringComparison.Ordinal);
        CliTool search = Tool("<Search>hunter2<Enter>");
        Assert.DoesNotContain("hunter2", (await search.RunAsync("shell")).Error, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("user create ann", false)]
    [InlineData("token create ann --secret-file ann.token", false)]
    [InlineData("hunter2", false)]
    [InlineData("context show shop --password-file shop.password", true)]
    [InlineData("exists 'a b' --timeout 1ms", true)]
    public async Task Lines_are_offered_again_and_saved_when_they_take_no_secret(string line, bool isSaved)
    {
        CliTool tool = Tool($"{line}<Enter><Up><Home>x<Enter>");
        CliResult result = await tool.RunAsync("shell");
        Assert.Contains($"'x{line.Split(' ')[0]}' is no command", result.Error, StringComparison.Ordinal);
        Assert.Equal(isSaved ? line + "\n" : "", await HistoryAsync());
    }

    [Fact]
    public async Task An_interrupt_ends_the_command_and_the_prompt_goes_on()
    {
        using TcpListener first = Silent();
        using TcpListener second = Silent();
        CliTool tool = Tool(
            $"get a -c {AddressOf(first)}<Enter>get b -c {AddressOf(second)}<Enter>context list<Enter>exit<Enter>");
        Task<CliResult> shell = tool.RunAsync("shell");
        foreach (TcpListener node in (TcpListener[])[first, second])
        {
            // The node takes the connection and stays silent, so the command runs until it is interrupted.
            using TcpClient taken = await node.AcceptTcpClientAsync().WaitAsync(LastNet.Span);
            Assert.True(tool.Interrupts.Interrupt());
        }

        CliResult result = await shell;
        Assert.Equal(2, Count(result.Error, "Interrupted."));
        Assert.Equal(0, result.ExitCode);
        Assert.False(tool.Interrupts.Process.IsCancellationRequested);
        Assert.Contains("context list", await HistoryAsync(), StringComparison.Ordinal);
    }

    private static TcpListener Silent()
    {
        TcpListener node = new(IPAddress.Loopback, 0);
        node.Start();
        return node;
    }

    private static string AddressOf(TcpListener node) => $"https://127.0.0.1:{((IPEndPoint)node.LocalEndpoint).Port}";

    private CliTool Tool(string keys) => new()
    {
        Terminal = new FakeTerminal(keys, ends: true),
        Variables =
        {
            ["KAHUNA_CONTEXTS"] = Path.Combine(_directory.Path, "contexts.json"),
            ["KAHUNA_ENDPOINTS"] = "https://127.0.0.1:1",
        },
    };

    private Task<string> HistoryAsync() => File.ReadAllTextAsync(Path.Combine(_directory.Path, "history"));

    private static int Count(string text, string part) =>
        text.Split(part, StringSplitOptions.None).Length - 1;
}
