using System.ComponentModel;
using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using System.Text.Json.Nodes;

namespace Kahuna.Tests.Cluster.Monitoring;

/// <summary>
/// A real Prometheus of the Debian package, with its data in a directory of the test. Owned by one test.
/// </summary>
internal sealed class PrometheusServer : IAsyncDisposable
{
    private const string Missing = "The Debian package prometheus is missing; apt-get install prometheus brings it.";

    private readonly Process _process;
    private readonly Guardian _guardian = new();
    private readonly HttpClient _http;
    private readonly Task<string> _log;

    private PrometheusServer(Process process, int port)
    {
        _process = process;
        _guardian.Add(process.Id);
        _log = process.StandardError.ReadToEndAsync();
        _http = new HttpClient { BaseAddress = new Uri($"http://127.0.0.1:{port}") };
    }

    /// <summary>Runs promtool and returns what it says; fails the test when it finds a mistake.</summary>
    public static async Task<string> CheckAsync(string? input, params string[] arguments)
    {
        using Process promtool = Start("promtool", ["check", .. arguments], readsInput: true);
        Task<string> output = promtool.StandardOutput.ReadToEndAsync();
        Task<string> errors = promtool.StandardError.ReadToEndAsync();
        await promtool.StandardInput.WriteAsync(input ?? "");
        promtool.StandardInput.Close();
        await promtool.WaitForExitAsync().WaitAsync(LastNet.Span);
        string said = await output + await errors;
        Assert.True(promtool.ExitCode == 0, $"promtool check {string.Join(' ', arguments)}: {said}");
        return said;
    }

    /// <summary>Starts it, and waits until it answers.</summary>
    /// <param name="configuration">The file with its configuration.</param>
    /// <param name="data">An empty directory.</param>
    public static async Task<PrometheusServer> StartAsync(string configuration, string data)
    {
        int port = FreePort();
        PrometheusServer server = new(
            Start(
                "prometheus",
                [
                    $"--config.file={configuration}", $"--storage.tsdb.path={data}",
                    $"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
                ]),
            port);
        try
        {
            await Eventually.TrueAsync(LastNet.Span, "Prometheus is ready", async () =>
                !server._process.HasExited
                    ? await server.IsReadyAsync()
                    : throw new InvalidOperationException($"Prometheus has ended: {await server._log}"));
            return server;
        }
        catch
        {
            await server.DisposeAsync();
            throw;
        }
    }

    /// <summary>The series that a query returns now.</summary>
    public async Task<JsonArray> QueryAsync(string query)
    {
        JsonNode answer = await GetAsync("/api/v1/query?query=" + Uri.EscapeDataString(query));
        Assert.True((string?)answer["status"] == "success", $"{query}: {answer.ToJsonString()}");
        return answer["data"]!["result"] as JsonArray ?? [];
    }

    /// <summary>The rules of all groups, as Prometheus has evaluated them.</summary>
    public async Task<JsonObject[]> RulesAsync() =>
    [
        .. (await GetAsync("/api/v1/rules"))["data"]!["groups"]!.AsArray()
            .SelectMany(static group => group!["rules"]!.AsArray()).Select(static rule => rule!.AsObject()),
    ];

    /// <summary>The names of all metrics that were scraped.</summary>
    public async Task<IEnumerable<string>> NamesAsync() =>
        (await GetAsync("/api/v1/label/__name__/values"))["data"]!.AsArray().Select(static name => (string)name!);

    public async ValueTask DisposeAsync()
    {
        if (!_process.HasExited)
        {
            _process.Kill();
            await _process.WaitForExitAsync();
        }

        _guardian.Remove(_process.Id);
        _guardian.Dispose();
        _process.Dispose();
        _http.Dispose();
    }

    private static Process Start(string program, string[] arguments, bool readsInput = false)
    {
        try
        {
            return Process.Start(new ProcessStartInfo(program, arguments)
            {
                RedirectStandardInput = readsInput,
                RedirectStandardOutput = readsInput,
                RedirectStandardError = true,
            })!;
        }
        catch (Win32Exception error)
        {
            throw new InvalidOperationException(Missing, error);
        }
    }

    private static int FreePort()
    {
        using TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        return ((IPEndPoint)listener.LocalEndpoint).Port;
    }

    private async Task<bool> IsReadyAsync()
    {
        try
        {
            using HttpResponseMessage response = await _http.GetAsync(new Uri("/-/ready", UriKind.Relative));
            return response.IsSuccessStatusCode;
        }
        catch (HttpRequestException)
        {
            return false;
        }
    }

    private async Task<JsonNode> GetAsync(string path)
    {
        using HttpResponseMessage response = await _http.GetAsync(new Uri(path, UriKind.Relative));
        return JsonNode.Parse(await response.Content.ReadAsStringAsync())!;
    }
}
