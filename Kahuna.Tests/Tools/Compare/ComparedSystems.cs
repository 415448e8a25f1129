using System.Net.Sockets;
using Kahuna.Tests.Cluster;
using Kahuna.Tests.Tools.Processes;

namespace Kahuna.Tests.Tools.Compare;

/// <summary>
/// Starts the systems that are compared, each with new data; clearing the measurement ends them. Owned by
/// <see cref="CompareCommand"/>; one thread.
/// </summary>
internal sealed class ComparedSystems(Measurement run)
{
    private const string Healthy = "\"health\":\"true\"";

    /// <summary>Starts a system and returns its addresses, once it answers.</summary>
    public string Start(string system) => system switch
    {
        "kahuna" => StartCluster(),
        "kahuna_split" => StartCluster("--partitions", "2"),
        "kahuna_standalone" => StartStandalone(run).Url,
        "etcd" => StartEtcd(),
        "redis" => StartRedis(),
        _ => throw new MeasureException($"there is no system {system}"),
    };

    /// <summary>One node with data of its own.</summary>
    public static ServerNode StartStandalone(Measurement run)
    {
        ServerNode node =
            new(run, new ServerPlace(1, $"https://127.0.0.1:{ProcessCluster.FreePorts(1)[0]}", "standalone"));
        node.Start();
        node.Await(60, "does not become ready", () => node.IsReady);
        return node;
    }

    private string StartCluster(params string[] options)
    {
        ServerCluster cluster = new(run, "cluster");
        cluster.Up(options);
        return cluster.Endpoints;
    }

    private string StartEtcd()
    {
        List<int> ports = ProcessCluster.FreePorts(6);
        string[] clients = [.. ports.Take(3).Select(static port => $"http://127.0.0.1:{port}")];
        string[] peers = [.. ports.Skip(3).Select(static port => $"http://127.0.0.1:{port}")];
        string cluster = string.Join(',', peers.Select(static (peer, i) => $"n{i}={peer}"));
        Child[] nodes = [.. clients.Zip(peers).Select((urls, i) => run.Start(
            $"etcd{i}.log", "etcd", "--name", $"n{i}", "--data-dir", run.PathOf($"etcd{i}"),
            "--listen-client-urls", urls.First, "--advertise-client-urls", urls.First,
            "--listen-peer-urls", urls.Second, "--initial-advertise-peer-urls", urls.Second,
            "--initial-cluster", cluster, "--initial-cluster-state", "new", "--log-level", "error"))];
        using HttpClient http = new() { Timeout = TimeSpan.FromSeconds(2) };
        for (int i = 0; i < nodes.Length; i++)
        {
            (string url, Child node) = (clients[i], nodes[i]);
            AwaitAnswer(node, "etcd", () => Get(http, url + "/health").Contains(Healthy, StringComparison.Ordinal));
        }

        return string.Join(',', clients);
    }

    private static string Get(HttpClient http, string url) => http.GetStringAsync(url).GetAwaiter().GetResult();

    private string StartRedis()
    {
        int port = ProcessCluster.FreePorts(1)[0];
        string data = Directory.CreateDirectory(run.PathOf("redis")).FullName;
        Child node = run.Start(
            "redis.log", "redis-server", "--bind", "127.0.0.1", "--port", $"{port}", "--dir", data,
            "--appendonly", "yes", "--appendfsync", "always", "--save", "");
        AwaitAnswer(node, "Redis", () => Accepts(port));
        return $"127.0.0.1:{port}";
    }

    private static bool Accepts(int port)
    {
        using TcpClient connection = new("127.0.0.1", port);
        return connection.Connected;
    }

    private void AwaitAnswer(Child node, string system, Func<bool> answers)
    {
        run.WaitFor(30, $"{system} does not start", () =>
        {
            try
            {
                return node.HasExited || answers();
            }
            catch (Exception error) when (error is HttpRequestException or TaskCanceledException or SocketException)
            {
                return false;
            }
        });
        if (node.HasExited)
        {
            throw new MeasureException($"{system} does not start:\n{node.LogEnd}");
        }
    }
}
