using System.Text.Json;
using System.Text.RegularExpressions;
using Kahuna.Server.Hosting.Administration;
using Kahuna.Server.Hosting.Options;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Deployment;

/// <summary>
/// The image is small, has no rights, and agrees with the server; every variable in the files of deployments exists.
/// </summary>
public sealed partial class ImageTests
{
    /// <summary>The user of the base image, by number, as Kubernetes wants it.</summary>
    internal const int User = 1654;

    /// <summary>Where the program is in the image.</summary>
    internal const string Program = "/app/kahuna-server";

    /// <summary>Where its data is.</summary>
    internal const string Data = "/var/lib/kahuna";

    private static readonly string[] s_lines = [.. Deployed.Text("container/Dockerfile")
        .Replace("\\\n", " ", StringComparison.Ordinal)
        .Split('\n')
        .Where(static line => line.Length > 0 && line[0] != '#')];

    /// <summary>The stage that becomes the image.</summary>
    private static readonly string[] s_last =
        [.. s_lines.Reverse().TakeWhile(static line => !line.StartsWith("FROM ", StringComparison.Ordinal))];

    [Fact]
    public void Base_images_have_a_version_and_the_last_one_has_no_shell()
    {
        string[] images = [.. s_lines.Select(line => BaseImage().Match(line)).Where(match => match.Success)
            .Select(static match => match.Groups[1].Value)];
        Assert.Equal(2, images.Length);
        Assert.All(images, static image => Assert.Matches("^mcr\\.microsoft\\.com/dotnet/[a-z-]+:10\\.0-noble", image));
        Assert.EndsWith("-chiseled", images[^1], StringComparison.Ordinal);
        Assert.DoesNotContain(s_last, static line => line.StartsWith("RUN ", StringComparison.Ordinal));
    }

    [Fact]
    public void It_runs_the_server_as_a_user_without_rights()
    {
        Assert.Equal($"USER {User}:{User}", Single("USER"));
        Assert.Equal([Program], Words(Single("ENTRYPOINT")));
        Assert.Equal([Program, HealthCommand.Name, "--alive"], Words(Single("HEALTHCHECK")));
        Assert.Equal($"EXPOSE {NodeOptions.ListenDefault.Port}", Single("EXPOSE"));
        Assert.Equal($"VOLUME {Data}", Single("VOLUME"));
        Assert.Contains($"KAHUNA_DATA={Data}", Single("ENV"), StringComparison.Ordinal);
        Assert.Equal($"ARG VERSION={Deployed.Version}", Single("ARG"));
    }

    [Fact]
    public void The_context_has_what_the_server_is_built_from()
    {
        string[] taken = [.. Repository.Lines(".dockerignore").Where(static line => line.StartsWith('!'))
            .Select(static line => line[1..])];
        Assert.All(taken, static name => Assert.True(Repository.Exists(name), name));
        string project = File.ReadAllText(Repository.FullPath("Kahuna.Server/Kahuna.Server.csproj"));
        IEnumerable<string> needed = Reference().Matches(project).Select(static match => match.Groups[1].Value);
        Assert.Empty(needed.Append("Kahuna.Server").Append("Directory.Build.props").Append("Directory.Packages.props")
            .Append("global.json").Except(taken));
    }

    [Fact]
    public void Every_variable_is_an_option()
    {
        HashSet<string> known = [.. OptionSetting.All.Select(static setting => setting.Variable)];
        Findings.AssertNone(
            from file in Deployed.Files.Append("docs/deployment.md")
            from Match match in Variable().Matches(File.ReadAllText(Repository.FullPath(file)))
            where !known.Contains(match.Value)
            select $"{file}: {match.Value}");
    }

    [Fact]
    public void No_image_is_the_latest() =>
        Findings.AssertNone(Deployed.Files.Append("docs/deployment.md").Where(static file =>
            File.ReadAllText(Repository.FullPath(file)).Contains(":latest", StringComparison.Ordinal)));

    /// <summary>Node and library were compiled for the system that the archive is for.</summary>
    [Theory]
    [InlineData("linux-x64")]
    [InlineData("linux-arm64")]
    public void Packages_are_locked_for_each_system(string system) =>
        Assert.All(
            (string[])["Kahuna.Server", "Kahuna.Client", "Kahuna.Client/Wire"],
            project => Assert.Contains(
                $"\"net10.0/{system}\"",
                File.ReadAllText(Repository.FullPath($"{project}/packages.{system}.lock.json")),
                StringComparison.Ordinal));

    private static string Single(string instruction) =>
        s_last.Single(line => line.StartsWith(instruction + " ", StringComparison.Ordinal));

    private static string[] Words(string instruction) =>
        JsonSerializer.Deserialize<string[]>(instruction[instruction.IndexOf('[', StringComparison.Ordinal)..])!;

    [GeneratedRegex("^ARG [A-Z]+_IMAGE=(.+)$")]
    private static partial Regex BaseImage();

    [GeneratedRegex("ProjectReference Include=\"\\.\\./([\\w.]+)/")]
    private static partial Regex Reference();

    [GeneratedRegex("KAHUNA_[A-Z_]+")]
    private static partial Regex Variable();
}
