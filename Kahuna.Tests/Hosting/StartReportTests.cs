using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Tests.Transport;

namespace Kahuna.Tests.Hosting;

/// <summary>A node says at its start where it listens, and whether that is too open or too closed.</summary>
public sealed class StartReportTests
{
    private const string Open = "Clients are not authenticated: anyone who can reach ";
    private const string Closed =
        "This node listens only on 127.0.0.1:9001, which is reachable only from this machine, but announces ";

    [Theory]
    [InlineData("https://0.0.0.0:9001", "https://127.0.0.1:9001", "0.0.0.0:9001", Open + "0.0.0.0:9001")]
    [InlineData("https://127.0.0.1:9001,https://10.1.2.3:9001", "https://10.1.2.3:9001", "127.0.0.1:9001, 10.1.2.3:9001", Open + "127.0.0.1:9001, 10.1.2.3:9001")]
    [InlineData("https://127.0.0.1:9001", "https://127.0.0.1:9001", "127.0.0.1:9001", null)]
    [InlineData("https://127.0.0.1:9001", "https://localhost:9001", "127.0.0.1:9001", null)]
    [InlineData("https://127.0.0.1:9001", "https://node.example:9001", "127.0.0.1:9001", Closed + "https://node.example:9001")]
    public void Where_it_listens(string listen, string advertise, string bound, string? warning)
    {
        LogRecorder log = new();
        StartReport.Write(
            new NodeOptions
            {
                DataDirectory = "/data",
                Listen = [.. listen.Split(',').Select(address => new Uri(address))],
                Advertise = new Uri(advertise),
            },
            log);
        string[] lines = [.. log.Lines];
        Assert.Contains($"; listens on {bound}; data in ", lines[0], StringComparison.Ordinal);
        if (warning is null)
        {
            Assert.Single(lines);
        }
        else
        {
            Assert.StartsWith(warning, Assert.Single(lines[1..]), StringComparison.Ordinal);
        }
    }
}
