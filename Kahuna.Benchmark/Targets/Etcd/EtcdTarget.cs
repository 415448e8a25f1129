using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Targets.Etcd.Wire;
using Kahuna.Client.Wire.Grpc;

namespace Kahuna.Benchmark.Targets.Etcd;

/// <summary>
/// An etcd cluster over its v3 gRPC API without TLS; reads are linearizable, as is etcd's default. The workers are spread over several HTTP/2
/// connections, which go round the endpoints. Owned by the run.
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
            _channels[i] = new GrpcChannel(endpoint, new GrpcChannelOptions { ConnectTimeout = options.ConnectTimeout, EnableMultipleHttp2Connections = false });
        }
    }

    public async Task<TargetDescription> ConnectAsync(CancellationToken cancellationToken)
    {
        CallOptions call = new() { Deadline = _options.ConnectTimeout, CancellationToken = cancellationToken };
        string version = string.Empty;
        foreach (GrpcChannel channel in _channels)
        {
            try
            {
                StatusResponse status = await channel.UnaryAsync("/etcdserverpb.Maintenance/Status", new StatusRequest(), StatusResponse.Parser, call).ConfigureAwait(false);
                version = status.Version;
            }
            catch (GrpcException failure)
            {
                throw new TargetException($"etcd at {channel.Address.Authority} cannot be reached: {failure.Message}", failure);
            }
        }

        return new TargetDescription("etcd", version, [.. _options.Source.Endpoints.Select(endpoint => $"http://{endpoint.Authority}")]);
    }

    public ITargetSession OpenSession(int worker) => new EtcdSession(_channels[worker % _channels.Length], _options.Timeout);

    public bool IsTimeout(Exception failure) => failure is GrpcException { Code: GrpcStatusCode.DeadlineExceeded };

    public async ValueTask DisposeAsync()
    {
        foreach (GrpcChannel channel in _channels)
        {
            await channel.DisposeAsync().ConfigureAwait(false);
        }
    }

    /// <summary>What gave etcd its highest rate: one connection per endpoint up to 256 workers, one per 128 workers above.</summary>
    private static int ChooseConnections(BenchOptions options) => Math.Max(options.Source.Endpoints.Count, Math.Min(options.Concurrency / 128, 16));
}
