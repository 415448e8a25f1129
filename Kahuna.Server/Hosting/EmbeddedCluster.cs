using System.Net;
using System.Net.Sockets;
using System.Security.Cryptography;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Server.Hosting;

/// <summary>
/// A cluster inside this process, for benchmarks and tests: real nodes on loopback TLS endpoints with free ports, and
/// their data in a directory of their own, with every sync done. Owned by its caller; dispose it to stop the nodes and
/// remove a temporary directory.
/// </summary>
internal sealed class EmbeddedCluster : IAsyncDisposable
{
    private readonly List<KahunaNode> _nodes;
    private readonly string _directory;
    private readonly bool _temporary;

    private EmbeddedCluster(List<KahunaNode> nodes, string directory, bool temporary)
    {
        _nodes = nodes;
        _directory = directory;
        _temporary = temporary;
    }

    /// <summary>Comma-separated endpoints of all nodes.</summary>
    public string Endpoints =>
        string.Join(',', _nodes.Select(node => node.Options.Advertise.GetLeftPart(UriPartial.Authority)));

    public IReadOnlyList<KahunaNode> Nodes => _nodes;

    /// <summary>
    /// Starts <paramref name="nodes"/> nodes and returns when all are ready. <paramref name="configure"/> may change
    /// each node's options. If a node cannot start, it stops the started ones and throws. A node that fails later ends
    /// the process (<see cref="ProcessEnd"/>), unless <paramref name="fatalErrors"/> handles it.
    /// </summary>
    public static async Task<EmbeddedCluster> StartAsync(
        int nodes,
        string? directory = null,
        Func<NodeOptions, NodeOptions>? configure = null,
        IFatalErrors? fatalErrors = null,
        CancellationToken cancellationToken = default)
    {
        bool temporary = directory is null;
        directory ??= Directory.CreateTempSubdirectory("kahuna-").FullName;
        Directory.CreateDirectory(directory);
        string secretFile = Path.Combine(directory, "cluster-secret");
        if (!File.Exists(secretFile))
        {
            await File.WriteAllTextAsync(
                secretFile, Convert.ToHexString(RandomNumberGenerator.GetBytes(32)), cancellationToken).ConfigureAwait(
                false);
        }

        List<PeerNode> peers = [];
        foreach (int port in FreePorts(nodes))
        {
            peers.Add(new PeerNode(new NodeId((ushort)(peers.Count + 1)), new Uri($"https://127.0.0.1:{port}")));
        }

        EmbeddedCluster cluster = new([], directory, temporary);
        try
        {
            foreach (PeerNode peer in peers)
            {
                NodeOptions options = new()
                {
                    NodeId = peer.Id,
                    Listen = [peer.Address],
                    Advertise = peer.Address,
                    Peers = peers,
                    DataDirectory = Path.Combine(directory, $"node-{peer.Id}"),
                    ClusterSecretFile = nodes > 1 ? secretFile : null,
                    LogLevel = LogLevel.Error,
                };
                KahunaNode node = await KahunaNode.StartAsync(
                    configure is null ? options : configure(options), fatalErrors, cancellationToken).ConfigureAwait(
                    false);
                cluster._nodes.Add(node);
                _ = EndWithAsync(node);
            }

            foreach (KahunaNode node in cluster._nodes)
            {
                await node.WaitReadyAsync(cancellationToken).ConfigureAwait(false);
            }

            return cluster;
        }
        catch
        {
            await cluster.DisposeAsync().ConfigureAwait(false);
            throw;
        }
    }

    public async ValueTask DisposeAsync()
    {
        // All at once: handing leadership from one to the next would be useless work.
        await Task.WhenAll(_nodes.Select(node => node.DisposeAsync().AsTask())).ConfigureAwait(false);
        _nodes.Clear();
        if (_temporary)
        {
            Directory.Delete(_directory, recursive: true);
        }
    }

    /// <summary>Ends the process when a node fails, as kahuna-server does.</summary>
    private static async Task EndWithAsync(KahunaNode node) => node.EndProcess(await node.Fatal.ConfigureAwait(false));

    private static List<int> FreePorts(int count)
    {
        List<TcpListener> listeners = [];
        try
        {
            for (int i = 0; i < count; i++)
            {
                TcpListener listener = new(IPAddress.Loopback, 0);
                listener.Start();
                listeners.Add(listener);
            }

            return [.. listeners.Select(listener => ((IPEndPoint)listener.LocalEndpoint).Port)];
        }
        finally
        {
            foreach (TcpListener listener in listeners)
            {
                listener.Stop();
            }
        }
    }
}
