using Kahuna.Cli.Errors;

namespace Kahuna.Tests.Cli;

/// <summary>Command lines that cannot be used, or need no cluster.</summary>
public sealed class UsageTests
{
    private readonly CliTool _tool = new() { Variables = { ["KAHUNA_CONTEXTS"] = "/no/such/directory/contexts.json" } };

    [Theory]
    [InlineData("gte x", "Did you mean 'get'?")]
    [InlineData("lokc list", "Did you mean 'lock'?")]
    [InlineData("lock aquire x", "Did you mean 'acquire'?")]
    [InlineData("lock", "needs one of: acquire, extend")]
    [InlineData("get", "'key'")]
    [InlineData("get x --ouptut json", "Did you mean --output?")]
    [InlineData("get x --output yaml", "--output: 'yaml' is none of table, json, jsonl.")]
    [InlineData("watch a --scope planet", "--scope: 'planet' is none of prefix, key, bucket.")]
    [InlineData("set x --vlaue-file y", "Did you mean --value-file?")]
    [InlineData("get --ttl", "behind '--'")]
    [InlineData("set a b c", "one word too many")]
    [InlineData("scan --limit many", "--limit: 'many' is not a whole number")]
    [InlineData("scan --limit 0", "1 or more")]
    [InlineData("set a b --ttl soon", "--ttl: 'soon' is not a time")]
    [InlineData("extend a x", "ttl: 'x' is not a time")]
    [InlineData("get a --timeout 0", "--timeout: '0'")]
    [InlineData("get a --timeout 1d", "--timeout: '1d'")]
    [InlineData("set a b --fence x", "--fence: 'x'")]
    [InlineData("set a b --fence x:0", "--fence: 'x:0'")]
    [InlineData("get a -c http://127.0.0.1:8082", "https://")]
    [InlineData("get a -c ://", "://")]
    [InlineData("get a --password-file x", "--password-file needs --user")]
    [InlineData("get a --user x --token-file y", "contradict")]
    [InlineData("get a --user x --password-file /no/such/file", "does not exist")]
    [InlineData("get a --token-file /no/such/file", "does not exist")]
    [InlineData("get a --client-certificate /no/such/file", "cannot be used")]
    [InlineData("get a --client-certificate-key /no/such/file", "--client-certificate-key needs --client-certificate")]
    [InlineData("get a --user x", "there is no terminal to ask at")]
    [InlineData("get a --context nowhere", "There is no context 'nowhere'")]
    [InlineData("get a --trusted-ca /no/such/file --timeout 1s", "/no/such/file")]
    [InlineData("get a --trusted-ca /dev/null", "--trusted-ca: '/dev/null' holds no certificate")]
    [InlineData("completion tcsh", "shell: 'tcsh' is none of bash, ")]
    [InlineData("del a --prefix --if-revision 1", "--prefix takes no conditions")]
    [InlineData("lock release a", "'--owner'")]
    public async Task A_wrong_command_line_is_told_in_one_line(string line, string expected)
    {
        CliResult result = await _tool.RunAsync(line.Split(' '));
        Assert.True(result.ExitCode is ExitCode.Usage or ExitCode.Unavailable, $"{result.ExitCode}: {result.Error}");
        Assert.Contains(expected, result.Error, StringComparison.Ordinal);
        Assert.StartsWith("kahuna: ", result.Error, StringComparison.Ordinal);
        Assert.Single(result.Error, '\n');
        Assert.Empty(result.Bytes);
    }

    [Theory]
    [InlineData("--help", "doctor")]
    [InlineData("lock --help", "acquire")]
    [InlineData("set --help", "--if-absent")]
    public async Task Help_shows_commands_and_options(string line, string expected)
    {
        CliResult help = (await _tool.RunAsync(line.Split(' '))).Done();
        Assert.Contains(expected, help.Output, StringComparison.Ordinal);
        Assert.DoesNotContain("__complete", help.Output, StringComparison.Ordinal);
    }

    [Fact]
    public async Task A_cluster_that_is_not_there_is_told_so()
    {
        CliResult result = (await _tool.RunAsync("get", "a", "-c", "127.0.0.1:1", "--timeout", "1s"))
            .Ended(ExitCode.Unavailable);
        Assert.Contains("127.0.0.1:1", result.Error, StringComparison.Ordinal);
        Assert.Contains("kahuna doctor", result.Error, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("bash", "complete -o default -F _kahuna kahuna")]
    [InlineData("zsh", "compdef _kahuna kahuna")]
    [InlineData("fish", "complete -c kahuna")]
    [InlineData("pwsh", "Register-ArgumentCompleter")]
    public async Task Scripts_for_shells_are_printed(string shell, string expected) =>
        (await _tool.RunAsync("completion", shell)).Done().Shows(expected);

    [Theory]
    [InlineData("", "get lock set")]
    [InlineData("lo", "lock")]
    [InlineData("lock re", "release")]
    [InlineData("get a --out", "--output")]
    [InlineData("get a --output ", "json jsonl table")]
    [InlineData("watch --scope b", "bucket")]
    public async Task Commands_and_options_are_completed(string line, string expected)
    {
        string[] found = (await _tool.RunAsync(["__complete", "--", .. line.Split(' ')])).Done().Output.Split('\n');
        Assert.Equal([], expected.Split(' ').Except(found));
        Assert.DoesNotContain("__complete", found);
    }

    [Fact]
    public async Task Names_of_keys_are_completed_or_left_out_when_no_cluster_answers() =>
        Assert.Empty((await _tool.RunAsync("__complete", "--", "-c", "127.0.0.1:1", "get", "a")).Done().Output);
}
