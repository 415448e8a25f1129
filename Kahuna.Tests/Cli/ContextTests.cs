using Kahuna.Cli.Errors;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Cli;

/// <summary>Saved clusters, and what overrides what.</summary>
public sealed class ContextTests : IDisposable
{
    private readonly TemporaryDirectory _directory = new();
    private readonly CliTool _tool;

    public ContextTests() => _tool = new CliTool { Variables = { ["XDG_CONFIG_HOME"] = _directory.Path } };

    private string File => Path.Combine(_directory.Path, "kahuna", "contexts.json");

    public void Dispose() => _directory.Dispose();

    [Fact]
    public async Task Contexts_are_saved_chosen_and_removed()
    {
        string password = _directory.File("password", "secret of ann");
        string[] ann = ["--user", "ann", "--password-file", password];
        (await _tool.RunAsync(["context", "add", "one", "-c", "127.0.0.1:1", .. ann])).Done();
        (await _tool.RunAsync("context", "add", "two", "-c", "127.0.0.1:2")).Done();
        (await _tool.RunAsync("context", "show")).Done().Shows("one");
        (await _tool.RunAsync("context", "use", "two")).Done();
        string[] list = (await _tool.RunAsync("context", "list")).Done().Output.Split('\n');
        Assert.Equal("one   no      127.0.0.1:1", list[1]);
        Assert.Equal("two   yes     127.0.0.1:2", list[2]);
        string saved = await System.IO.File.ReadAllTextAsync(File);
        Assert.DoesNotContain("secret of ann", saved, StringComparison.Ordinal);
        Assert.True(CliTool.IsForItsOwner(File));
        Assert.Equal([File], Directory.GetFiles(Path.GetDirectoryName(File)!));
        (await _tool.RunAsync("context", "remove", "two")).Done();
        (await _tool.RunAsync("context", "show")).Ended(ExitCode.NotThere);
        (await _tool.RunAsync("context", "use", "two")).Ended(ExitCode.NotThere);
        (await _tool.RunAsync("context", "add", "three")).Ended(ExitCode.Usage);
    }

    [Fact]
    public async Task An_option_overrides_the_environment_which_overrides_the_context()
    {
        (await _tool.RunAsync("context", "add", "one", "-c", "127.0.0.1:1")).Done();
        (await _tool.RunAsync("context", "add", "two", "-c", "127.0.0.1:2")).Done();
        Assert.Contains("127.0.0.1:1 ", await WhereAsync(), StringComparison.Ordinal);
        Assert.Contains("127.0.0.1:2 ", await WhereAsync("--context", "two"), StringComparison.Ordinal);
        _tool.Variables["KAHUNA_CONTEXT"] = "two";
        Assert.Contains("127.0.0.1:2 ", await WhereAsync(), StringComparison.Ordinal);
        _tool.Variables["KAHUNA_ENDPOINTS"] = "127.0.0.1:3";
        Assert.Contains("127.0.0.1:3 ", await WhereAsync(), StringComparison.Ordinal);
        Assert.Contains("127.0.0.1:4 ", await WhereAsync("-c", "127.0.0.1:4"), StringComparison.Ordinal);
    }

    [Fact]
    public async Task Credentials_of_a_context_do_not_go_to_another_cluster()
    {
        // A file that is not there is told as soon as it is used.
        (await _tool.RunAsync("context", "add", "one", "-c", "127.0.0.1:1", "--token-file", "/no/such/token")).Done();
        (await _tool.RunAsync("get", "a")).Ended(ExitCode.Usage).Tells("/no/such/token");
        Assert.Contains("127.0.0.1:2 ", await WhereAsync("-c", "127.0.0.1:2"), StringComparison.Ordinal);
        (await _tool.RunAsync("get", "a", "-c", "127.0.0.1:2", "--context", "one")).Ended(ExitCode.Usage);
    }

    [Theory]
    [InlineData("{")]
    [InlineData("[]")]
    [InlineData("{\"contexts\": {\"a\": {\"password\": \"x\"}}}")]
    public async Task A_damaged_file_is_told(string content)
    {
        _tool.Variables["KAHUNA_CONTEXTS"] = _directory.File("damaged.json", content);
        (await _tool.RunAsync("context", "list")).Ended(ExitCode.Usage).Tells("damaged");
    }

    [Fact]
    public async Task A_file_of_any_size_is_not_read()
    {
        string path = _directory.File("large.json", "");
        using (FileStream file = System.IO.File.OpenWrite(path))
        {
            file.SetLength(1L << 32);
        }

        _tool.Variables["KAHUNA_CONTEXTS"] = path;
        (await _tool.RunAsync("context", "list")).Ended(ExitCode.Usage).Tells("larger");
    }

    private async Task<string> WhereAsync(params string[] options) =>
        (await _tool.RunAsync(["get", "a", "--timeout", "1s", .. options])).Ended(ExitCode.Unavailable).Error;
}
