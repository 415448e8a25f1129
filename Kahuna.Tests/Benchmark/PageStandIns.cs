using System.Net;
using System.Net.Sockets;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Benchmark;

/// <summary>
/// The systems that commands of docs/benchmarking.md name on their usual ports: small servers of the tests for Redis
/// and etcd, and a cluster of three nodes. Each runs while a command needs it. Owned by a test.
/// </summary>
internal static class PageStandIns
{
    private const int RedisPort = 6379;
    private const int EtcdPort = 2379;
    private static readonly int[] s_clusterPorts = [8082, 8084, 8086];

    /// <summary>
    /// Starts what the command needs; null: a program that is not of the tests has one of the ports, and must not get
    /// their load.
    /// </summary>
    public static async Task<IAsyncDisposable?> StartAsync(string command)
    {
        int[] ports = command switch
        {
            _ when command.Contains($":{RedisPort}", StringComparison.Ordinal) => [RedisPort],
            _ when command.Contains($":{EtcdPort}", StringComparison.Ordinal) => [EtcdPort],
            _ when command.Contains($":{s_clusterPorts[0]}", StringComparison.Ordinal) => s_clusterPorts,
            _ => [],
        };
        if (!ports.All(IsFree))
        {
            return null;
        }

        return ports switch
        {
            [RedisPort] => new FakeRedisServer(RedisPort),
            [EtcdPort] => await FakeEtcdServer.StartAsync(EtcdPort),
            [] => new Nothing(),
            _ => await EmbeddedCluster.StartAsync(ports.Length, configure: AtThesePorts),
        };
    }

    private static NodeOptions AtThesePorts(NodeOptions options)
    {
        Uri[] addresses = [.. s_clusterPorts.Select(static port => new Uri($"https://127.0.0.1:{port}"))];
        Uri own = addresses[options.NodeId.Value - 1];
        return options with
        {
            Listen = [own],
            Advertise = own,
            Peers = [.. addresses.Select(static (address, i) => new PeerNode(new NodeId((ushort)(i + 1)), address))],
        };
    }

    private static bool IsFree(int port)
    {
        try
        {
            using TcpListener listener = new(IPAddress.Loopback, port);
            listener.Start();
            return true;
        }
        catch (SocketException)
        {
            return false;
        }
    }

    /// <summary>The command needs no other system.</summary>
    private sealed class Nothing : IAsyncDisposable
    {
        public ValueTask DisposeAsync() => ValueTask.CompletedTask;
    }
}
