using System.Net;
using System.Net.Http.Headers;
using System.Net.Http.Json;
using System.Net.Sockets;
using System.Security.Cryptography;
using Kahuna.Client;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// Real server processes on loopback, with TLS, data, certificates and secret in a temporary directory that goes with
/// them. Owned by one test; not thread-safe.
/// </summary>
internal sealed class ProcessCluster : IAsyncDisposable
{
    private static readonly TimeSpan s_readyWithin = LastNet.Span;

    private readonly ITestOutputHelper _output;
    private readonly string _directory = Directory.CreateTempSubdirectory("kahuna-cluster-").FullName;
    private readonly Guardian _guardian = new();
    private readonly HttpClient _http;

    /// <param name="output">Where the nodes' logs go when the test fails.</param>
    /// <param name="nodes">Number of nodes.</param>
    /// <param name="options">Further options of all nodes.</param>
    public ProcessCluster(ITestOutputHelper output, int nodes = 3, params string[] options)
    {
        _output = output;
        _http = new HttpClient(new HttpClientHandler
        {
            ServerCertificateCustomValidationCallback = HttpClientHandler.DangerousAcceptAnyServerCertificateValidator,
        })
        {
            Timeout = TimeSpan.FromSeconds(5),
        };
        string[] urls = [.. FreePorts(nodes).Select(port => $"https://127.0.0.1:{port}")];
        string secret = Path.Combine(_directory, "secret");
        File.WriteAllText(secret, RandomNumberGenerator.GetHexString(64));
        if (!OperatingSystem.IsWindows())
        {
            File.SetUnixFileMode(secret, UnixFileMode.UserRead | UnixFileMode.UserWrite);
        }

        string peers = string.Join(',', urls.Select((url, i) => $"{i + 1}={url}"));
        Nodes =
        [
            .. urls.Select((url, i) => new NodeProcess(
                i + 1,
                url,
                _directory,
                [.. Options(i + 1, url, nodes == 1 ? null : peers, secret), .. options],
                _guardian)),
        ];
    }

    public IReadOnlyList<NodeProcess> Nodes { get; }

    public string CertificateDirectory => Path.Combine(_directory, "certificates");

    public string Endpoints => string.Join(',', Nodes.Select(node => node.Url));

    /// <summary>
    /// The header by which the tests sign in to ask for the state of nodes that require authentication; null: none.
    /// </summary>
    public string? Authorization
    {
        set => _http.DefaultRequestHeaders.Authorization =
            value is null ? null : AuthenticationHeaderValue.Parse(value);
    }

    public string ScratchFile(string name) => Path.Combine(_directory, name);

    /// <summary>Starts all nodes that do not run and waits until they are ready.</summary>
    public async Task StartAsync()
    {
        foreach (NodeProcess node in Nodes.Where(node => !node.IsRunning))
        {
            node.Start();
        }

        await WaitReadyAsync();
    }

    /// <summary>Waits until every running node is ready; a node that ends meanwhile fails at once.</summary>
    public async Task WaitReadyAsync()
    {
        foreach (NodeProcess node in Nodes.Where(node => node.IsRunning).ToList())
        {
            await Eventually.TrueAsync(s_readyWithin, $"node {node.Id} is ready", async () =>
                node.IsRunning
                    ? await StatusAsync(node) is { Ready: true }
                    : throw new InvalidOperationException(
                        $"Node {node.Id} ended with exit code {node.ExitCode} instead of becoming ready."));
        }
    }

    /// <summary>What a node says of itself, or null when it does not answer.</summary>
    public async Task<NodeStatus?> StatusAsync(NodeProcess node)
    {
        try
        {
            return await _http.GetFromJsonAsync<NodeStatus>($"{node.Url}/status");
        }
        catch (Exception error) when (error is HttpRequestException or TaskCanceledException)
        {
            return null;
        }
    }

    /// <summary>The node that leads all partitions, or their ephemeral keys, once there is one.</summary>
    public async Task<NodeProcess> LeaderAsync(NodeProcess? otherThan = null, bool ephemeral = false)
    {
        NodeProcess? leader = null;
        await Eventually.TrueAsync(s_readyWithin, "one node leads all partitions", async () =>
        {
            ulong newest = 0;
            leader = null;
            foreach (NodeProcess node in Nodes.Where(node => node.IsRunning && node != otherThan))
            {
                if (await StatusAsync(node) is { } status
                    && (ephemeral ? status.LeadsAllEphemeral : status.LeadsAll)
                    && status.Term >= newest)
                {
                    (leader, newest) = (node, status.Term);
                }
            }

            return leader is not null;
        });
        return leader!;
    }

    /// <summary>
    /// The digest of the state that all nodes come to, one for each partition; fails when they come to different ones.
    /// Nothing may write meanwhile.
    /// </summary>
    public async Task<string> DigestAsync(TimeSpan within)
    {
        string digest = "";
        await Eventually.TrueAsync(within, "all nodes come to the same entry", async () =>
        {
            NodeStatus?[] statuses = await Task.WhenAll(Nodes.Select(StatusAsync));
            PartitionRow[][] rows = [.. statuses.Select(static status => status?.Partitions.ToArray() ?? [])];
            bool same = rows[0].Length > 0
                && rows.All(row => row.Select(static partition => partition.AppliedIndex).SequenceEqual(
                    rows[0].Select(static partition => partition.AppliedIndex)));
            if (same)
            {
                digest = Assert.Single(
                    rows.Select(static row => string.Join(' ', row.Select(static partition => partition.Digest)))
                        .Distinct());
            }

            return same;
        });
        return digest;
    }

    public KahunaClient Connect(TimeSpan requestTimeout, Durability durability = Durability.Persistent) =>
        KahunaClient.Connect(Endpoints, options =>
    {
        options.Insecure = true;
        options.Durability = durability;
        options.RequestTimeout = requestTimeout;
    });

    /// <summary>Runs the test; when it fails, the nodes' logs are shown with it.</summary>
    public async Task RunAsync(Func<Task> test)
    {
        try
        {
            await test();
        }
        catch
        {
            foreach (NodeProcess node in Nodes)
            {
                string[] lines = node.Log().Split('\n');
                _output.WriteLine(
                    $"---- node {node.Id}, {(node.IsRunning ? "running" : "ended")}, last lines of its log:");
                _output.WriteLine(string.Join('\n', lines.TakeLast(40)));
            }

            throw;
        }
    }

    public async ValueTask DisposeAsync()
    {
        foreach (NodeProcess node in Nodes)
        {
            node.Dispose();
        }

        _guardian.Dispose();
        _http.Dispose();
        await Task.Yield();
        Directory.Delete(_directory, recursive: true);
    }

    private string[] Options(int id, string url, string? peers, string secret)
    {
        string[] own =
        [
            "--node-id",
            $"{id}",
            "--data",
            Path.Combine(_directory, $"node{id}"),
            "--listen",
            url,
            "--advertise",
            url,
        ];
        return peers is null ? own : [.. own, "--peers", peers, "--cluster-secret-file", secret];
    }

    /// <summary>
    /// Ports below the range from which the system gives ports to outgoing connections, free at this moment.
    /// </summary>
    public static List<int> FreePorts(int count)
    {
        List<int> ports = [];
        while (ports.Count < count)
        {
            int port = Random.Shared.Next(20_000, 32_000);
            using Socket probe = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
            try
            {
                probe.Bind(new IPEndPoint(IPAddress.Loopback, port));
            }
            catch (SocketException)
            {
                continue;
            }

            if (!ports.Contains(port))
            {
                ports.Add(port);
            }
        }

        return ports;
    }
}
