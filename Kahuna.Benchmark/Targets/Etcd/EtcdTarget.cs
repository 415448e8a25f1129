using System.Net;
using System.Net.Sockets;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets.Etcd.Wire;

namespace Kahuna.Benchmark.Targets.Etcd;

/// <summary>
/// An etcd cluster over its v3 gRPC API without TLS; reads are linearizable, as is etcd's default. The workers are
/// spread over several HTTP/2 connections, which go round the endpoints. Owned by the run.
/// </summary>
internal sealed class EtcdTarget : ITarget
{
    private readonly BenchOptions _options;
    private readonly GrpcChannel[] _channels;

    public EtcdTarget(BenchOptions options)
    {
        _options = options;
        int count = options.Connections > 0 ? options.Connections : ChooseConnections(options);
        _channels = new GrpcChannel[Math.Min(count, options.Concurrency)];
        for (int i = 0; i < _channels.Length; i++)
        {
            Uri endpoint = options.Source.Endpoints[i % options.Source.Endpoints.Count];
            _channels[i] = Open(endpoint, options.ConnectTimeout);
        }
    }

    public async Task<TargetDescription> ConnectAsync(CancellationToken cancellationToken)
    {
        string version = string.Empty;
        foreach (GrpcChannel channel in _channels)
        {
            try
            {
                CallOptions call = new(
                    deadline: DateTime.UtcNow + _options.ConnectTimeout, cancellationToken: cancellationToken);
                StatusResponse status = await new Maintenance.MaintenanceClient(channel)
                    .StatusAsync(new StatusRequest(), call).ConfigureAwait(false);
                version = status.Version;
            }
            catch (RpcException failure)
            {
                cancellationToken.ThrowIfCancellationRequested();
                throw new TargetException(
                    $"etcd at {channel.Target} cannot be reached: {new EtcdException(failure).Message}", failure);
            }
        }

        return new TargetDescription("etcd", version, [.. _options.Source.Endpoints.Select(endpoint => $"http://{endpoint.Authority}")]);
    }

    public ITargetSession OpenSession(int worker) =>
        new EtcdSession(new KV.KVClient(_channels[worker % _channels.Length]), _options.Timeout);

    public ValueTask DisposeAsync()
    {
        foreach (GrpcChannel channel in _channels)
        {
            channel.Dispose();
        }

        return ValueTask.CompletedTask;
    }

    /// <summary>
    /// What gave etcd its highest rate: one connection per endpoint up to 256 workers, one per 128 workers above.
    /// </summary>
    private static int ChooseConnections(BenchOptions options) =>
        Math.Max(options.Source.Endpoints.Count, Math.Min(options.Concurrency / 128, 16));

    /// <summary>A channel of one connection, with TLS for https and with prior knowledge of HTTP/2 for http.</summary>
    private static GrpcChannel Open(Uri endpoint, TimeSpan connectTimeout)
    {
        SocketsHttpHandler handler = new()
        {
            ActivityHeadersPropagator = null,
            AllowAutoRedirect = false,
            AutomaticDecompression = DecompressionMethods.None,
            ConnectCallback = DialAsync,
            ConnectTimeout = connectTimeout,
            EnableMultipleHttp2Connections = false,
            InitialHttp2StreamWindowSize = 1 << 20,
            KeepAlivePingDelay = TimeSpan.FromSeconds(15),
            KeepAlivePingPolicy = HttpKeepAlivePingPolicy.WithActiveRequests,
            KeepAlivePingTimeout = TimeSpan.FromSeconds(10),
            PooledConnectionIdleTimeout = Timeout.InfiniteTimeSpan,
            UseCookies = false,
            UseProxy = false,
        };
        return GrpcChannel.ForAddress(
            endpoint, new GrpcChannelOptions { HttpHandler = handler, DisposeHttpClient = true });
    }

    /// <summary>
    /// With it a lost connection is made again by the next call; without, the gRPC client would first pause, for up to
    /// two minutes.
    /// </summary>
    private static async ValueTask<Stream> DialAsync(
        SocketsHttpConnectionContext context, CancellationToken cancellationToken)
    {
        Socket socket = new(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        try
        {
            await socket.ConnectAsync(context.DnsEndPoint, cancellationToken).ConfigureAwait(false);
            return new NetworkStream(socket, ownsSocket: true);
        }
        catch
        {
            socket.Dispose();
            throw;
        }
    }
}
