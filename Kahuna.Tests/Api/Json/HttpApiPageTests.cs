using System.Diagnostics;
using System.Text.RegularExpressions;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Api.Json;

/// <summary>
/// Runs the commands of docs/http-api.md as written and in order, at a node that does not lead, and compares what they
/// print with what the page shows.
/// </summary>
[Collection(nameof(ThreeNodesCollection))]
public sealed partial class HttpApiPageTests(ThreeNodes nodes)
{
    private const string Page = "docs/http-api.md";

    /// <summary>Stands for whatever is printed in its place.</summary>
    private const string Whatever = "…";

    [Fact]
    public async Task Every_command_prints_what_the_page_shows()
    {
        string page = await File.ReadAllTextAsync(Repository.FullPath(Page));
        string script = string.Join(
            '\n',
            Block()
                .Matches(page)
                .Where(static block => block.Groups["kind"].Value == "sh")
                .Select(static block => block.Groups["text"].Value));
        string[] shown =
        [
            .. Block()
                .Matches(page)
                .Where(static block => block.Groups["kind"].Value == "json")
                .SelectMany(
                    static block => block.Groups["text"].Value.Split('\n', StringSplitOptions.RemoveEmptyEntries)),
        ];
        Assert.True(shown.Length > 20, $"{shown.Length} answers are shown");
        string[] printed = await RunAsync(script);
        foreach ((string line, string pattern) in printed.Zip(shown))
        {
            bool fits = Regex.IsMatch(
                line, "^" + Regex.Escape(pattern).Replace(Whatever, ".*", StringComparison.Ordinal) + "$");
            Assert.True(fits, $"printed {line}\nshown   {pattern}");
        }

        Assert.Equal(shown.Length, printed.Length);
    }

    [Fact]
    public void The_page_names_every_method_and_path()
    {
        string page = File.ReadAllText(Repository.FullPath(Page));
        foreach ((string method, string path) in HttpRules.All())
        {
            Assert.Contains(path.Replace("=**", "", StringComparison.Ordinal), page, StringComparison.Ordinal);
            Assert.True(method == "DescribeCluster" || page.Contains(method, StringComparison.Ordinal), method);
        }
    }

    private async Task<string[]> RunAsync(string script)
    {
        ProcessStartInfo start = new("bash", ["-euo", "pipefail", "-c", script])
        {
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        start.Environment["KAHUNA"] = nodes.Cluster.Nodes[(nodes.LeaderIndex + 1) % 3].Options.Advertise.ToString()
            .TrimEnd('/');
        start.Environment["KAHUNA_CA"] = Path.Combine(
            DevelopmentCertificates.Directory(), DevelopmentCertificates.CaFile);
        using Process bash = Process.Start(start)!;
        Task<string> output = bash.StandardOutput.ReadToEndAsync();
        Task<string> errors = bash.StandardError.ReadToEndAsync();
        await bash.WaitForExitAsync().WaitAsync(LastNet.Span);
        Assert.True(bash.ExitCode == 0, $"exit code {bash.ExitCode}\n{await output}\n{await errors}");
        return (await output).Split('\n', StringSplitOptions.RemoveEmptyEntries);
    }

    [GeneratedRegex("^```(?<kind>sh|json)\n(?<text>.*?)^```$", RegexOptions.Multiline | RegexOptions.Singleline)]
    private static partial Regex Block();
}
