using Kahuna.Client.Connection.Access;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Protos;
using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Connection;

/// <summary>
/// The link to one node: opens a stream, reopens it after a pause when it has ended, and exposes the stream that
/// accepts operations. Owned by the <see cref="ClusterLinks"/>. Runs one loop; any thread reads its properties.
/// </summary>
internal sealed class NodeLink : IStreamOwner
{
    private readonly ClusterLinks _links;
    private readonly ConnectionSettings _settings;
    private readonly ConnectionPorts _ports;
    private readonly ILogger _logger;
    private readonly Backoff _backoff;
    private readonly Backoff _reconnectBackoff;
    private readonly ConnectionClock _clock;
    private readonly bool _captures;
    private readonly CancellationTokenSource _stop = new();
    private volatile NodeStream? _ready;
    private volatile NodeStream? _current;
    private volatile string? _lastFailure;
    private volatile string? _objection;
    private volatile AccessRefusal? _refusal;
    private volatile bool _hasFailed;
    private volatile int _credentials;
    private volatile TaskCompletionSource? _wanted;
    private volatile bool _isWanted;
    private volatile int _nodeId;
    private volatile bool _isRetired;
    private long _unreadySince;
    private Task _loop = Task.CompletedTask;

    public NodeLink(
        ClusterLinks links, ConnectionSettings settings, ConnectionPorts ports, ILogger logger, Uri endpoint, int seed)
    {
        _links = links;
        _settings = settings;
        _ports = ports;
        _logger = logger;
        Endpoint = endpoint;
        _clock = new ConnectionClock(ports.Time);
        _unreadySince = _clock.Now;
        _captures = ports.Context is not null;
        _backoff = new Backoff(settings.BackoffMin, settings.BackoffMax, seed);
        _reconnectBackoff = new Backoff(settings.BackoffMin, settings.ReconnectMax, seed);
    }

    public Uri Endpoint { get; }

    /// <summary>The node's id; 0 until it is known. Written under the lock of the links.</summary>
    public int NodeId
    {
        get => _nodeId;
        set => _nodeId = value;
    }

    /// <summary>The stream that accepts operations; null while there is none.</summary>
    public NodeStream? Ready => _ready;

    /// <summary>Since when <see cref="Ready"/> is null; undefined while it is not.</summary>
    public long UnreadySince => Volatile.Read(ref _unreadySince);

    /// <summary>The open stream, also during the handshake and while it only waits for outstanding replies.</summary>
    public NodeStream? Current => _current;

    /// <summary>Why the last attempt or stream ended; null while connected and before the first attempt.</summary>
    public string? LastFailure => _lastFailure;

    /// <summary>Why the node's certificate is not trusted, if that ended the last attempt; otherwise null.</summary>
    public string? Objection => _objection;

    /// <summary>Why the node did not let the client in, if that ended the last attempt; otherwise null.</summary>
    public AccessRefusal? Refusal => _refusal;

    /// <summary>The last attempt or stream has ended, and the next one is not made at once.</summary>
    public bool HasFailed => _hasFailed;

    /// <summary>The version of the credentials with which the stream was opened.</summary>
    public int Credentials => _credentials;

    /// <inheritdoc/>
    public bool RenewsCredentials => _links.Authorization.IsRenewable;

    /// <summary>An operation waits for the node: shortens this or the next pause to that of operations.</summary>
    public void Want()
    {
        _isWanted = true;
        _wanted?.TrySetResult();
    }

    /// <summary>Starts the loop. Called once.</summary>
    public void Start(DetachedLoops loops) => _loop = loops.Start(() => RunAsync(loops));

    /// <summary>
    /// Stops reconnecting; outstanding requests are still answered. For a node that is no longer a member or has
    /// another link.
    /// </summary>
    public void Retire()
    {
        _isRetired = true;
        Unready();
        Interlocked.MemoryBarrier();
        _current?.Drain();
    }

    /// <summary>Ends the link; the task completes with the loop.</summary>
    public Task StopAsync(string reason)
    {
        _isRetired = true;
        Unready();
        _stop.Cancel();
        Interlocked.MemoryBarrier();
        _current?.Abort(reason);
        return _loop;
    }

    /// <inheritdoc/>
    public void OnMap(NodeStream stream, DescribeClusterResponse map)
    {
        bool isFirst = _ready != stream && !_isRetired && !stream.IsDraining;
        if (isFirst)
        {
            _lastFailure = null;
            _objection = null;
            _refusal = null;
            _hasFailed = false;
            stream.IsGreeted = true;
            _ready = stream;
        }

        if (_links.OnMap(this, map) is { } objection)
        {
            Unready();
            stream.Abort(objection);
        }
        else if (isFirst && _logger.IsEnabled(LogLevel.Information))
        {
            ConnectionLog.Connected(_logger, NodeId, Endpoint);
        }
    }

    /// <inheritdoc/>
    public void OnGoAway(NodeStream stream)
    {
        ConnectionLog.GoesAway(_logger, NodeId, Endpoint);
        Unready();
        stream.Drain();
    }

    /// <inheritdoc/>
    public void OnEnded(NodeStream stream) => Unready();

    /// <inheritdoc/>
    public void OnRefused(OperationRef reference, in Refusal refusal)
    {
        if (refusal.Status == OutcomeStatus.Unauthenticated)
        {
            Unready();
            _current?.Refuse(new AccessRefusal(KahunaErrorCode.Unauthenticated, ""));
        }

        _links.OnRefused(this, reference, refusal);
    }

    /// <inheritdoc/>
    public string NameLoss(string reason) => $"{Endpoint.Authority} ({reason})";

    private void Unready()
    {
        if (_ready is not null)
        {
            Volatile.Write(ref _unreadySince, _clock.Now);
            _ready = null;
        }
    }

    private async Task RunAsync(DetachedLoops loops)
    {
        int failures = 0;
        while (!_isRetired)
        {
            long begun = _ports.Time.GetTimestamp();
            (bool wasReady, string reason) = await ConnectOnceAsync(loops).ConfigureAwait(_captures);
            if (_isRetired)
            {
                break;
            }

            // A node that accepts streams and drops them at once is treated like an unreachable one.
            bool hasLasted = wasReady && _ports.Time.GetElapsedTime(begun) > _settings.BackoffMax;
            failures = hasLasted ? 1 : failures + 1;
            bool isRenewed = _refusal is { IsUnauthenticated: true }
                && _links.Authorization.Refuse(_credentials, hasLasted);
            Report(wasReady, reason);
            _lastFailure = reason;
            _hasFailed = !isRenewed;
            _links.OnFailed();
            if (isRenewed && failures == 1)
            {
                continue;
            }

            await PauseUntilWantedAsync(failures).ConfigureAwait(_captures);

            // A configured address that belongs to no member is needed only while no member is connected.
            while (_nodeId == 0 && !_isRetired && _links.Routes.IsAnyReady)
            {
                await PauseAsync(_settings.BackoffMax).ConfigureAwait(_captures);
            }
        }

        _links.OnEnded(this);
    }

    private async Task<(bool WasReady, string Reason)> ConnectOnceAsync(DetachedLoops loops)
    {
        IFrameStream? bytes = null;
        bool wasReady = false;
        using CancellationTokenSource timeout = new(_settings.ConnectTimeout, _ports.Time);
        try
        {
            using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(
                timeout.Token, _stop.Token);
            AuthorizationHeader header = await _links.Authorization.GetAsync(limit.Token).ConfigureAwait(_captures);
            _credentials = header.Version;
            bytes = await _ports.Channel.OpenAsync(Endpoint, header.Text, limit.Token).ConfigureAwait(_captures);
            NodeStream stream = new(this, bytes, _clock, _settings, _links.Sessions, _ports.Context);
            _current = stream;
            Interlocked.MemoryBarrier();
            if (_isRetired)
            {
                // Stopped before there was a stream to abort.
                return (false, "stopped");
            }

            using CancellationTokenRegistration greeting = timeout.Token.UnsafeRegister(_ =>
            {
                if (!stream.IsGreeted)
                {
                    stream.Abort("the node accepted the connection but sent no hello in time");
                }
            }, null);
            string reason = await stream.RunAsync(loops).ConfigureAwait(_captures);
            wasReady = stream.IsGreeted;
            _refusal = stream.AccessRefusal;
            return (wasReady, reason);
        }
        catch (Exception e)
        {
            _objection = UntrustedServerException.Find(e);
            _refusal = AccessRefusal.Find(e);
            return (wasReady, timeout.IsCancellationRequested && e is OperationCanceledException
                ? FormattableString.Invariant($"no connection within {_settings.ConnectTimeout.TotalSeconds:0.###} s")
                : _objection ?? DisconnectReasons.Of(e));
        }
        finally
        {
            Unready();
            _current = null;
            if (bytes is not null)
            {
                await bytes.DisposeAsync().ConfigureAwait(_captures);
            }
        }
    }

    private void Report(bool wasReady, string reason)
    {
        if (wasReady)
        {
            ConnectionLog.Lost(_logger, Endpoint, reason);
        }
        else if (reason != _lastFailure)
        {
            ConnectionLog.CannotConnect(_logger, Endpoint, reason);
        }
    }

    /// <summary>Pauses as operations do, and longer while no operation waits for the node.</summary>
    private async ValueTask PauseUntilWantedAsync(int failures)
    {
        TaskCompletionSource wanted = new(TaskCreationOptions.RunContinuationsAsynchronously);
        _wanted = wanted;
        TimeSpan least = _backoff.After(failures);
        TimeSpan rest = _reconnectBackoff.After(failures) - least;
        await PauseAsync(least).ConfigureAwait(_captures);
        if (rest > TimeSpan.Zero && !_isWanted && !_isRetired)
        {
            // The task itself is awaited, so that a simulated run continues in its own context, whatever completes it.
            using ITimer timer = _ports.Time.CreateTimer(
                static state => ((TaskCompletionSource)state!).TrySetResult(), wanted, rest, Timeout.InfiniteTimeSpan);
            using CancellationTokenRegistration stop = _stop.Token.UnsafeRegister(
                static state => ((TaskCompletionSource)state!).TrySetResult(), wanted);
            await wanted.Task.ConfigureAwait(_captures);
        }

        _wanted = null;
        _isWanted = false;
    }

    private async ValueTask PauseAsync(TimeSpan pause)
    {
        try
        {
            await Task.Delay(pause, _ports.Time, _stop.Token).ConfigureAwait(_captures);
        }
        catch (OperationCanceledException)
        {
            // The loop's condition ends it.
        }
    }
}
