using System.Diagnostics;
using System.Text.RegularExpressions;
using Kahuna.Tests.Tidy;

namespace Kahuna.Tests.Deployment;

/// <summary>The files of <c>deploy/</c>, and the programs that check them. Stateless.</summary>
internal static partial class Deployed
{
    /// <summary>The version of the product, which tags of images name.</summary>
    public static string Version { get; } =
        VersionElement().Match(File.ReadAllText(Repository.FullPath("Directory.Build.props"))).Groups[1].Value;

    /// <summary>The files below <c>deploy/</c> that belong to this page: those of users, not of dashboards.</summary>
    public static IEnumerable<string> Files => Repository.Files.Where(
        static file => file.StartsWith("deploy/", StringComparison.Ordinal)
            && !file.StartsWith("deploy/prometheus/", StringComparison.Ordinal)
            && !file.StartsWith("deploy/grafana/", StringComparison.Ordinal));

    /// <summary>The text of a file of <c>deploy/</c>.</summary>
    public static string Text(string file) => File.ReadAllText(Repository.FullPath("deploy/" + file));

    /// <summary>Runs a program to its end: exit code, and both outputs together.</summary>
    public static (int ExitCode, string Output) Run(string program, params string[] arguments)
    {
        using Process process = Process.Start(new ProcessStartInfo(program, arguments)
        {
            RedirectStandardError = true,
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
            WorkingDirectory = Path.GetTempPath(),
        })!;
        process.StandardInput.Close();
        Task<string> error = process.StandardError.ReadToEndAsync();
        string output = process.StandardOutput.ReadToEnd();
        process.WaitForExit();
        return (process.ExitCode, output + error.GetAwaiter().GetResult());
    }

    [GeneratedRegex("<Version>(.+)</Version>")]
    private static partial Regex VersionElement();
}
