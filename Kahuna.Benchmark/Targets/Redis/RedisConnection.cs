using System.Net.Sockets;
using System.Text;

namespace Kahuna.Benchmark.Targets.Redis;

/// <summary>
/// One connection that comes back: holds the current <see cref="RedisLink"/> and replaces it when it broke.
/// Thread-safe; owned by the target.
/// </summary>
internal sealed class RedisConnection : IAsyncDisposable
{
    private static readonly TimeSpan s_reconnectPause = TimeSpan.FromMilliseconds(100);

    private readonly Uri _endpoint;
    private readonly TimeSpan _timeout;
    private readonly CancellationTokenSource _closing = new();
    private RedisLink? _link;
    private Task _running = Task.CompletedTask;

    public RedisConnection(Uri endpoint, TimeSpan timeout)
    {
        _endpoint = endpoint;
        _timeout = timeout;
    }

    /// <summary>The link in use; requests on a broken one fail at once.</summary>
    public RedisLink Link =>
        Volatile.Read(ref _link) ?? throw new IOException($"{_endpoint.Authority} is not connected.");

    public async Task ConnectAsync(CancellationToken cancellationToken)
    {
        RedisLink link = await OpenAsync(cancellationToken).ConfigureAwait(false);
        Volatile.Write(ref _link, link);
        _running = KeepConnectedAsync(link);
    }

    /// <summary>Asks for the server's version.</summary>
    public async Task<string> ReadVersionAsync()
    {
        byte[] reply = await Link.SendInfoAsync().ConfigureAwait(false);
        string? line = Encoding.UTF8
            .GetString(reply)
            .Split('\n')
            .FirstOrDefault(text => text.StartsWith("redis_version:", StringComparison.Ordinal));
        return line is null ? "unknown" : line["redis_version:".Length..].Trim();
    }

    /// <summary>Ends the requests whose deadline has passed.</summary>
    public void Expire(long now) => Volatile.Read(ref _link)?.Expire(now);

    public async ValueTask DisposeAsync()
    {
        await _closing.CancelAsync().ConfigureAwait(false);
        Volatile.Read(ref _link)?.Break(new IOException("The connection was closed."));
        await _running.ConfigureAwait(false);
        _closing.Dispose();
    }

    private async Task KeepConnectedAsync(RedisLink link)
    {
        await link.ReadAsync().ConfigureAwait(false);
        while (!_closing.IsCancellationRequested)
        {
            try
            {
                link = await OpenAsync(_closing.Token).ConfigureAwait(false);
                Volatile.Write(ref _link, link);
                await link.ReadAsync().ConfigureAwait(false);
            }
            catch (Exception failure) when (failure is SocketException or OperationCanceledException)
            {
                // The requests of the workers report the failure; this loop only tries again.
            }

            await Task.Delay(s_reconnectPause, _closing.Token).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        }
    }

    private async Task<RedisLink> OpenAsync(CancellationToken cancellationToken)
    {
        Socket socket = new(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        try
        {
            await socket.ConnectAsync(_endpoint.Host.Trim('[', ']'), _endpoint.Port, cancellationToken).ConfigureAwait(
                false);
            return new RedisLink(socket, _timeout);
        }
        catch
        {
            socket.Dispose();
            throw;
        }
    }
}
