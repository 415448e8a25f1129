using System.Text;
using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire;
using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Watches;

/// <summary>
/// The watches of one client: makes them, and carries them all on one stream to one node. Owned by the client; any
/// thread.
/// </summary>
internal sealed class ClientWatches
{
    private static readonly TimeSpan s_pause = TimeSpan.FromMilliseconds(200);

    private readonly WatchLink _link;
    private readonly NowRounds _persistent;
    private readonly NowRounds _ephemeral;
    private readonly TimeSpan _requestTimeout;
    private readonly TimeProvider _time;

    public ClientWatches(
        ClusterConnection connection, ConnectionSettings settings, ConnectionPorts ports, ILogger logger)
    {
        Connection = connection;
        Logger = logger;
        Clock = new ConnectionClock(ports.Time);
        _time = ports.Time;
        _requestTimeout = settings.RequestTimeout;
        _link = new WatchLink(connection, Book, settings, ports, logger);
        _persistent = new NowRounds(connection, Durability.Persistent);
        _ephemeral = new NowRounds(connection, Durability.Ephemeral);
    }

    /// <summary>The connection for reads.</summary>
    public ClusterConnection Connection { get; }

    /// <summary>What the watches have had.</summary>
    public WatchBook Book { get; } = new();

    /// <summary>The clock of progress.</summary>
    public ConnectionClock Clock { get; }

    /// <summary>Where caches log what their handlers throw.</summary>
    public ILogger Logger { get; }

    /// <summary>A watch, which begins when it is enumerated.</summary>
    /// <param name="durability">The durability that counts when the options name none.</param>
    /// <param name="name">The key, bucket or prefix.</param>
    /// <param name="options">The options.</param>
    /// <param name="ct">Ends every enumeration.</param>
    /// <exception cref="KahunaException">The name or the position is refused.</exception>
    public IAsyncEnumerable<WatchEvent> Of(
        Durability durability, string name, WatchOptions options, CancellationToken ct)
    {
        options.Check();
        durability = options.Durability ?? durability;
        if (options.From is { } from && from.Durability != durability)
        {
            throw OperationErrors.PositionOfAnotherLevel(from.Durability);
        }

        WatchFilter filter = new(durability, options.Scope, !options.KeysOnly, NameOf(name, options.Scope));
        return new WatchSequence(this, filter, options, ct);
    }

    /// <summary>A position at or behind every change that was acknowledged before the call.</summary>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async Task<WatchPosition> NowAsync(Durability durability, CancellationToken ct)
    {
        Task<WatchPosition> now = (durability == Durability.Ephemeral ? _ephemeral : _persistent).AskAsync();
        try
        {
            return await (ct.CanBeCanceled ? now.WaitAsync(ct) : now).ConfigureAwait(Connection.CapturesContext);
        }
        catch (OperationCanceledException) when (ct.IsCancellationRequested)
        {
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }
    }

    /// <summary>Begins a watch at a node.</summary>
    public void Begin(WatchQueue queue, in WatchFilter filter, WatchPosition from, WatchOrigin origin)
    {
        Book.Begin(queue, in filter, from, origin);
        if (!_link.TryCarry())
        {
            Book.End(queue);
            queue.End(OperationErrors.Closed());
            queue.OnBegun();
        }
    }

    /// <summary>Ends a watch at its node.</summary>
    public void End(WatchQueue queue)
    {
        Book.End(queue);
        _link.OnRequests();
    }

    /// <summary>Waits until a node has begun a watch, or the watch has ended.</summary>
    /// <exception cref="KahunaException">No node has within the request timeout.</exception>
    public async Task WaitBegunAsync(Task begun, CancellationToken ct)
    {
        try
        {
            if (!begun.IsCompleted)
            {
                await begun.WaitAsync(_requestTimeout, _time, ct).ConfigureAwait(Connection.CapturesContext);
            }
        }
        catch (TimeoutException)
        {
            throw OperationErrors.WatchNotServed(_link.LastFailure, _requestTimeout);
        }
        catch (OperationCanceledException) when (ct.IsCancellationRequested)
        {
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }
    }

    /// <summary>Repeats reads of a watch that has begun, with pauses, while the cluster cannot answer them.</summary>
    public async Task PersistAsync(Func<Task> read, CancellationToken ct)
    {
        while (true)
        {
            try
            {
                await read().ConfigureAwait(Connection.CapturesContext);
                return;
            }
            catch (KahunaException failure) when (IsPassing(failure.Code))
            {
            }

            try
            {
                await Task.Delay(s_pause, _time, ct).ConfigureAwait(Connection.CapturesContext);
            }
            catch (OperationCanceledException)
            {
                throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
            }
        }
    }

    /// <summary>Ends all watches: the client is disposed.</summary>
    public Task StopAsync() => _link.StopAsync();

    private static bool IsPassing(KahunaErrorCode code) =>
        code is KahunaErrorCode.DeadlineExceeded
            or KahunaErrorCode.Unavailable
            or KahunaErrorCode.Overloaded
            or KahunaErrorCode.ConnectionLost;

    private static byte[] NameOf(string name, WatchScope scope)
    {
        string what = scope switch
        {
            WatchScope.Key => "key",
            WatchScope.Bucket => "bucket",
            _ => "prefix",
        };
        byte[] bytes;
        try
        {
            bytes = Utf8Text.Strict.GetBytes(name);
        }
        catch (EncoderFallbackException)
        {
            throw OperationErrors.NoUtf8(what);
        }

        return bytes.Length > Limits.KeyBytesMax ? throw OperationErrors.NameTooLong(what, name)
            : bytes.Length == 0 && scope == WatchScope.Key
                ? throw OperationErrors.BadArgument("key is empty; it must have 1 to 1,024 bytes")
            : bytes.AsSpan().StartsWith(Limits.ReservedPrefix)
                ? throw OperationErrors.BadArgument($"{what} begins with __kahuna, which is reserved for the system")
            : bytes;
    }

    /// <summary>What the caller enumerates, any number of times. Immutable.</summary>
    private sealed class WatchSequence(
        ClientWatches watches, WatchFilter filter, WatchOptions options, CancellationToken ct)
        : IAsyncEnumerable<WatchEvent>
    {
        public IAsyncEnumerator<WatchEvent> GetAsyncEnumerator(CancellationToken cancellationToken)
        {
            if (!ct.CanBeCanceled || ct == cancellationToken)
            {
                return new Watch(watches, in filter, options, cancellationToken);
            }

            return cancellationToken.CanBeCanceled
                ? EitherAsync(cancellationToken)
                : new Watch(watches, in filter, options, ct);
        }

        private async IAsyncEnumerator<WatchEvent> EitherAsync(CancellationToken other)
        {
            using CancellationTokenSource either = CancellationTokenSource.CreateLinkedTokenSource(ct, other);
            Watch watch = new(watches, in filter, options, either.Token);
            await using (watch.ConfigureAwait(watches.Connection.CapturesContext))
            {
                while (await watch.MoveNextAsync().ConfigureAwait(watches.Connection.CapturesContext))
                {
                    yield return watch.Current;
                }
            }
        }
    }
}
