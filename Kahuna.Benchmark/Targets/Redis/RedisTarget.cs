using System.Net.Sockets;
using Kahuna.Benchmark.Options;
using Kahuna.Benchmark.Timing;

namespace Kahuna.Benchmark.Targets.Redis;

/// <summary>
/// A Redis server over RESP2 without TLS. The workers share a few connections, on which their requests pipeline by
/// themselves: what arrives in one read is answered, and what the answered workers send next leaves in one write. Owned
/// by the run.
/// </summary>
internal sealed class RedisTarget : ITarget
{
    private readonly BenchOptions _options;
    private readonly RedisConnection[] _connections;
    private Timer? _sweep;

    public RedisTarget(BenchOptions options)
    {
        if (options.Source.Endpoints.Count != 1)
        {
            throw new TargetException("--target redis needs exactly one endpoint.");
        }

        _options = options;
        int count = options.Connections > 0 ? options.Connections : ChooseConnections(options.Concurrency);
        _connections = new RedisConnection[Math.Min(count, options.Concurrency)];
        for (int i = 0; i < _connections.Length; i++)
        {
            _connections[i] = new RedisConnection(options.Source.Endpoints[0], options.Timeout);
        }
    }

    public async Task<TargetDescription> ConnectAsync(CancellationToken cancellationToken)
    {
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        limit.CancelAfter(_options.ConnectTimeout);
        Uri endpoint = _options.Source.Endpoints[0];
        try
        {
            foreach (RedisConnection connection in _connections)
            {
                await connection.ConnectAsync(limit.Token).ConfigureAwait(false);
            }

            string version = await _connections[0].ReadVersionAsync().WaitAsync(limit.Token).ConfigureAwait(false);
            // After the first question: what opens the target has the time of --connect-timeout, not a request's.
            StartSweep();
            return new TargetDescription("redis", version, [$"redis://{endpoint.Authority}"]);
        }
        catch (OperationCanceledException) when (!cancellationToken.IsCancellationRequested)
        {
            throw new TargetException(
                $"{endpoint.Authority} did not answer within "
                    + $"{_options.ConnectTimeout.TotalSeconds:G} s (--connect-timeout).");
        }
        catch (Exception failure) when (
            failure is SocketException or IOException or TimeoutException or RequestFailedException)
        {
            throw new TargetException($"{endpoint.Authority} cannot be reached: {failure.Message}", failure);
        }
    }

    public ITargetSession OpenSession(int worker) => new RedisSession(_connections[worker % _connections.Length]);

    public async ValueTask DisposeAsync()
    {
        if (_sweep is not null)
        {
            await _sweep.DisposeAsync().ConfigureAwait(false);
        }

        foreach (RedisConnection connection in _connections)
        {
            await connection.DisposeAsync().ConfigureAwait(false);
        }
    }

    /// <summary>
    /// What gave Redis its highest rate: one connection up to about a hundred workers, then one more per 128. A
    /// connection per worker, as redis-benchmark uses, halves the rate at 64 workers and more than that above, because
    /// every request then is a packet of its own.
    /// </summary>
    private static int ChooseConnections(int workers) => Math.Clamp(workers / 128, 1, 16);

    private void StartSweep()
    {
        // Fine enough that a timeout is reported within a tenth of itself.
        TimeSpan interval = TimeSpan.FromMilliseconds(Math.Clamp(_options.Timeout.TotalMilliseconds / 10, 5, 100));
        _sweep = new Timer(
            _ => Array.ForEach(_connections, connection => connection.Expire(Ticks.Now)), null, interval, interval);
    }
}
