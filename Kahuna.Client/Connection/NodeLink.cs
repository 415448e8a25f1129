using Kahuna.Client.Wire.Outcomes;
using Kahuna.Client.Wire.Protos;
using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Connection;

/// <summary>
/// The way to one node: opens a stream, opens it again after a pause when it ended, and says which stream can be sent to.
/// Owned by the <see cref="ClusterLinks"/>; runs one loop, its properties are read by any thread.
/// </summary>
internal sealed class NodeLink : IStreamOwner
{
    private readonly ClusterLinks _links;
    private readonly ConnectionSettings _settings;
    private readonly ConnectionPorts _ports;
    private readonly ILogger _logger;
    private readonly Backoff _backoff;
    private readonly ConnectionClock _clock;
    private readonly CancellationTokenSource _stop = new();
    private volatile NodeStream? _ready;
    private volatile NodeStream? _current;
    private volatile string? _lastFailure;
    private volatile int _nodeId;
    private volatile bool _isRetired;
    private Task _loop = Task.CompletedTask;

    public NodeLink(ClusterLinks links, ConnectionSettings settings, ConnectionPorts ports, ILogger logger, Uri endpoint, int seed)
    {
        _links = links;
        _settings = settings;
        _ports = ports;
        _logger = logger;
        Endpoint = endpoint;
        _clock = new ConnectionClock(ports.Time);
        _backoff = new Backoff(settings.BackoffMin, settings.BackoffMax, seed);
    }

    public Uri Endpoint { get; }

    /// <summary>The node's id; 0 until it is known. Written by the connection under its lock.</summary>
    public int NodeId
    {
        get => _nodeId;
        set => _nodeId = value;
    }

    /// <summary>The stream that takes operations; null while there is none.</summary>
    public NodeStream? Ready => _ready;

    /// <summary>The stream that lasts, also while it greets and while it only answers what it took.</summary>
    public NodeStream? Current => _current;

    /// <summary>Why the last attempt or stream ended; null while connected and before the first.</summary>
    public string? LastFailure => _lastFailure;

    /// <summary>Starts the loop. Called once.</summary>
    public void Start(Loops loops) => _loop = loops.Start(() => RunAsync(loops));

    /// <summary>Lets the stream answer what it took, and opens no other: the node is no member any more, or has another link.</summary>
    public void Retire()
    {
        _isRetired = true;
        _ready = null;
        Interlocked.MemoryBarrier();
        _current?.Drain();
    }

    /// <summary>Ends everything; the task ends with the loop.</summary>
    public Task StopAsync(string reason)
    {
        _isRetired = true;
        _ready = null;
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
            stream.IsGreeted = true;
            _ready = stream;
        }

        if (_links.OnMap(this, map) is { } objection)
        {
            _ready = null;
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
        _ready = null;
        stream.Drain();
    }

    /// <inheritdoc/>
    public void OnEnded(NodeStream stream) => _ready = null;

    /// <inheritdoc/>
    public void OnRefused(OperationRef reference, OutcomeStatus status, int hintedNodeId) =>
        _links.OnRefused(this, reference, status, hintedNodeId);

    /// <inheritdoc/>
    public string NameLoss(string reason) => $"{Endpoint.Authority} ({reason})";

    private async Task RunAsync(Loops loops)
    {
        int failures = 0;
        while (!_isRetired)
        {
            long begun = _ports.Time.GetTimestamp();
            (bool wasReady, string reason) = await ConnectOnceAsync(loops);
            if (_isRetired)
            {
                break;
            }

            Report(wasReady, reason);
            _lastFailure = reason;
            _links.OnChanged();

            // A node that takes streams and drops them at once is treated like one that cannot be reached.
            bool hasLasted = wasReady && _ports.Time.GetElapsedTime(begun) > _settings.BackoffMax;
            failures = hasLasted ? 1 : failures + 1;
            await PauseAsync(_backoff.After(failures));

            // An address that is no member's is needed only while no member is there.
            while (_nodeId == 0 && !_isRetired && _links.Routes.IsAnyReady)
            {
                await PauseAsync(_settings.BackoffMax);
            }
        }

        _links.OnEnded(this);
    }

    private async Task<(bool WasReady, string Reason)> ConnectOnceAsync(Loops loops)
    {
        IFrameStream? bytes = null;
        bool wasReady = false;
        using CancellationTokenSource timeout = new(_settings.ConnectTimeout, _ports.Time);
        try
        {
            using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(timeout.Token, _stop.Token);
            bytes = await _ports.Channel.OpenAsync(Endpoint, limit.Token);
            NodeStream stream = new(this, bytes, _clock, _settings.MaxInFlight, _links.Sessions, _ports.Context);
            _current = stream;
            Interlocked.MemoryBarrier();
            if (_isRetired)
            {
                // Stopped at the moment when there was no stream to abort yet.
                return (false, "stopped");
            }

            using CancellationTokenRegistration greeting = timeout.Token.UnsafeRegister(_ =>
            {
                if (!stream.IsGreeted)
                {
                    stream.Abort("the node took the connection but did not greet in time");
                }
            }, null);
            string reason = await stream.RunAsync(loops);
            wasReady = stream.IsGreeted;
            return (wasReady, reason);
        }
        catch (Exception e)
        {
            return (wasReady, timeout.IsCancellationRequested && e is OperationCanceledException
                ? FormattableString.Invariant($"no connection within {_settings.ConnectTimeout.TotalSeconds:0.###} s")
                : Reasons.Of(e));
        }
        finally
        {
            _ready = null;
            _current = null;
            if (bytes is not null)
            {
                await bytes.DisposeAsync();
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

    private async ValueTask PauseAsync(TimeSpan pause)
    {
        try
        {
            await Task.Delay(pause, _ports.Time, _stop.Token);
        }
        catch (OperationCanceledException)
        {
            // The loop's condition ends it.
        }
    }
}
