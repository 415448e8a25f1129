using System.Globalization;
using System.Text.RegularExpressions;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Deployment;

/// <summary>
/// systemd accepts the unit and finds it well confined, and the node starts with the example's options.
/// </summary>
public sealed partial class SystemdTests
{
    private const string Name = "kahuna-server.service";

    /// <summary>
    /// On systemd's scale from 0 to 10. It calls up to 2 OK, and a service without any confinement has 9.6.
    /// </summary>
    private const double ExposureMax = 2.0;

    private static readonly Dictionary<string, string> s_none = [];

    private static readonly string s_unit = Deployed.Text("systemd/" + Name);

    [Fact]
    public void Systemd_accepts_the_unit()
    {
        using TemporaryDirectory directory = new();
        Assert.Equal((0, ""), Verify(directory, s_unit));
    }

    [Fact]
    public void Systemd_refuses_an_unknown_setting()
    {
        using TemporaryDirectory directory = new();
        string wrong = s_unit.Replace("ProtectSystem=", "ProtectSystems=", StringComparison.Ordinal);
        Assert.Contains("ProtectSystems", Verify(directory, wrong).Output, StringComparison.Ordinal);
    }

    [Fact]
    public void The_unit_is_confined()
    {
        using TemporaryDirectory directory = new();
        (_, string output) = Deployed.Run(
            "systemd-analyze", "security", "--offline=true", "--no-pager", directory.File(Name, s_unit));
        Match exposure = Exposure().Match(output);
        Assert.True(exposure.Success, output);
        Assert.InRange(double.Parse(exposure.Groups[1].Value, CultureInfo.InvariantCulture), 0, ExposureMax);
    }

    [Fact]
    public void A_node_starts_with_the_example_s_options()
    {
        using ClusterFiles files = new("secrets");
        string host = "kahuna-1.example.net";
        File.Copy(files[host + ".pem"], files["node.pem"]);
        File.Copy(files[host + "-key.pem"], files["node-key.pem"]);
        string config = files["kahuna.json"];
        string example = Deployed.Text("systemd/kahuna.json");
        Assert.Contains($"\"/var/log/{Value("LogsDirectory")}/", example, StringComparison.Ordinal);
        File.WriteAllText(
            config,
            example.Replace($"/etc/{Value("ConfigurationDirectory")}/", files.Directory + "/", StringComparison.Ordinal)
                .Replace($"/var/log/{Value("LogsDirectory")}/", files.Directory + "/", StringComparison.Ordinal));
        string[] command = Value("ExecStart").Split(' ');
        Assert.Equal("/etc/kahuna/kahuna.json", command[^1]);
        NodeOptions options = ClusterFiles.Accepted(
            [.. command[1..^1], config], s_none, s_none);

        Assert.Equal(host, options.Advertise.Host);
        Assert.Equal("/var/lib/" + Value("StateDirectory"), options.DataDirectory);
        Assert.Equal(files["audit.log"], options.Access.AuditLogPath);
    }

    [Fact]
    public void It_has_time_to_stop_and_a_user()
    {
        Assert.True(
            int.Parse(Value("TimeoutStopSec").TrimEnd('s'), CultureInfo.InvariantCulture)
                > 3 * KahunaNode.DrainLimit.TotalSeconds);
        Assert.Contains(
            $"\nu {Value("User")} ", Deployed.Text("systemd/kahuna.sysusers.conf"), StringComparison.Ordinal);
    }

    private static string Value(string name) =>
        s_unit.Split('\n').Single(line => line.StartsWith(name + "=", StringComparison.Ordinal))[(name.Length + 1)..];

    /// <summary>With another program, since systemd looks whether it is there.</summary>
    private static (int ExitCode, string Output) Verify(TemporaryDirectory directory, string unit) => Deployed.Run(
        "systemd-analyze",
        "verify",
        directory.File(Name, unit.Replace(Value("ExecStart").Split(' ')[0], "/bin/true", StringComparison.Ordinal)));

    [GeneratedRegex(@"Overall exposure level[^:]*: ([\d.]+)")]
    private static partial Regex Exposure();
}
