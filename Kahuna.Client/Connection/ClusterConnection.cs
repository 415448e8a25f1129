using Kahuna.Client.Results;
using Kahuna.Client.Wire.Outcomes;
using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Connection;

/// <summary>
/// Brings operations to the nodes that lead their keys and back: finds the way, tries again what failed, under the number that
/// it had, and keeps deadlines. Owned by the client; any thread. Holds no lock while operations end.
/// </summary>
internal sealed class ClusterConnection : IAsyncDisposable
{
    // How exact deadlines and pauses are. The timer runs only while operations are under way.
    private static readonly TimeSpan s_tick = TimeSpan.FromMilliseconds(20);

    // A healthy leader answers within milliseconds; a new one is elected within about 1 s. One that is silent for longer than
    // both while it owes replies is asked about at another node.
    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(2);

    private readonly ConnectionSettings _settings;
    private readonly ConnectionPorts _ports;
    private readonly ClusterLinks _links;
    private readonly Backoff _backoff;
    private readonly ConnectionClock _clock;
    private readonly ParkedOperations _parked = new();
    private readonly ITimer _timer;
    private readonly long _requestTimeout;
    private readonly long _patience;
    private volatile bool _isClosed;
    private int _isDisposed;
    private int _armed;
    private long _lastProbe;

    public ClusterConnection(ConnectionSettings settings, ConnectionPorts ports, ILogger logger)
    {
        _settings = settings;
        _ports = ports;
        _clock = new ConnectionClock(ports.Time);
        _links = new ClusterLinks(this, settings, ports, logger);
        _backoff = new Backoff(settings.BackoffMin, settings.BackoffMax, ports.Seed);
        _requestTimeout = _clock.Of(settings.RequestTimeout);
        _patience = _clock.Of(s_patience);
        using (ExecutionContext.IsFlowSuppressed() ? default(AsyncFlowControl?) : ExecutionContext.SuppressFlow())
        {
            _timer = ports.Time.CreateTimer(static state => ((ClusterConnection)state!).Tick(), this, Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
        }
    }

    /// <summary>Starts an operation; the task ends with its result or failure, at the request timeout at the latest.</summary>
    public ValueTask<TResult> Run<TResult>(Operation<TResult> operation, CancellationToken ct)
        where TResult : struct, IOperationResult<TResult>
    {
        ValueTask<TResult> task = operation.Start(_settings.InlineContinuations, ct);
        OperationRef reference = operation.Reference;
        Exception? refusal = _isClosed ? new ObjectDisposedException(nameof(KahunaClient)) : operation.Refusal;
        if (refusal is not null)
        {
            if (reference.TryEnd())
            {
                operation.Fail(refusal);
            }

            return task;
        }

        if (!_links.IsStarted)
        {
            _links.Start();
        }

        long now = _clock.Now;
        operation.HoldUntil = now + _clock.OfMs(operation.HoldMs);
        operation.Deadline = operation.HoldUntil + (operation.Patience is { } patience ? Math.Min(_clock.Of(patience), _requestTimeout) : _requestTimeout);
        NodeStream? stream = Choose(operation, now);
        if (stream is null || !stream.TrySend(reference, now))
        {
            Park(reference, now);
        }

        Arm();
        return task;
    }

    /// <summary>How long an operation may take altogether, in ticks of the clock.</summary>
    public long RequestTimeout => _requestTimeout;

    /// <summary>Code after an await goes on in the context that the ports name.</summary>
    public bool CapturesContext => _ports.Context is not null;

    /// <summary>The cluster as the connected nodes see it; waits for the first node for at most the connect timeout.</summary>
    public async ValueTask<ClusterDescription> DescribeAsync(CancellationToken ct)
    {
        ObjectDisposedException.ThrowIf(_isClosed, typeof(KahunaClient));
        _links.Start();
        return (await _links.ConnectedAsync(ct).ConfigureAwait(_ports.Context is not null)).Describe();
    }

    /// <summary>How many partitions there are, for an operation that asks all of them.</summary>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<int> PartitionsAsync(CancellationToken ct)
    {
        try
        {
            return (await DescribeAsync(ct).ConfigureAwait(CapturesContext)).Partitions.Count;
        }
        catch (OperationCanceledException) when (ct.IsCancellationRequested)
        {
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }
    }

    /// <inheritdoc/>
    public async ValueTask DisposeAsync()
    {
        if (Interlocked.Exchange(ref _isDisposed, 1) != 0)
        {
            return;
        }

        _isClosed = true;
        Task ended = _links.StopAsync("the client was disposed");
        foreach (OperationRef reference in _parked.Close())
        {
            End(reference, () => Failures.Disposed(reference.Operation.MayHaveHappened));
        }

        await _timer.DisposeAsync().ConfigureAwait(_ports.Context is not null);
        await ended.ConfigureAwait(_ports.Context is not null);
        await _ports.Channel.DisposeAsync().ConfigureAwait(_ports.Context is not null);
    }

    /// <summary>A node came or a leader changed: what waits for either is tried again.</summary>
    public void OnRoutesChanged() => SendDue(isRouteNew: true);

    /// <summary>An operation goes out again, under the number that it has: at once where another way is known, else after a pause.</summary>
    public void OnRefused(NodeLink from, OperationRef reference, OutcomeStatus status, int hintedNodeId)
    {
        if (!reference.TryHold())
        {
            return;
        }

        Operation operation = reference.Operation;
        if (status == OutcomeStatus.SessionUnknown && !TryRenumber(reference))
        {
            return;
        }

        operation.Attempts++;
        operation.LastRefusal = status;
        bool isElsewhere = hintedNodeId != 0 && hintedNodeId != from.NodeId && operation.Attempts <= 3;
        operation.HintedNodeId = isElsewhere ? hintedNodeId : 0;
        bool mayPassAtOnce = status is OutcomeStatus.Unavailable or OutcomeStatus.SessionUnknown;
        bool atOnce = isElsewhere || (mayPassAtOnce && operation.Attempts == 1);
        int route = operation.Route;
        reference.Release();
        if (status == OutcomeStatus.NotLeader && route >= 0)
        {
            _links.CorrectLeader(from, route, hintedNodeId);
        }

        long now = _clock.Now;
        if (!atOnce || !TrySendAgain(reference, now))
        {
            Park(reference, now);
        }

        Arm();
    }

    /// <summary>The session is forgotten: another one takes over what surely did not happen. False, and ended, when an earlier attempt may have; the reference is then held no more.</summary>
    private static bool TryRenumber(OperationRef reference)
    {
        Operation operation = reference.Operation;
        operation.Session?.Forget();
        if (!operation.MayHaveHappened && operation.Session is not null)
        {
            operation.DropNumber();
            return true;
        }

        reference.Release();
        if (reference.TryEnd())
        {
            operation.Complete(new Outcome(OutcomeStatus.SessionUnknown));
        }

        return false;
    }

    private static void End(OperationRef reference, Func<Exception> failure)
    {
        if (reference.TryEnd())
        {
            reference.Operation.Fail(failure());
        }
    }

    /// <summary>The leader's stream, or that of any node while there is no leader to send to.</summary>
    private NodeStream? Choose(Operation operation, long now)
    {
        RouteTable routes = _links.Routes;
        operation.Route = operation.FixedPartition is { } partition ? routes.Map.RouteOf(partition, operation.Durability) : routes.Map.RouteOf(operation.Key, operation.Durability);
        operation.Epoch = operation.Route < 0 ? 0 : routes.Map[operation.Route].Epoch;
        if (operation.HintedNodeId != 0)
        {
            NodeStream? hinted = routes.Link(operation.HintedNodeId)?.Ready;
            operation.HintedNodeId = 0;
            if (hinted is not null)
            {
                return hinted;
            }
        }

        if (routes.Map.Partitions == 0)
        {
            return null;
        }

        NodeStream? leader = routes.Leader(operation.Route)?.Ready;
        return leader is not null && !(leader.IsSuspect && IsProbeDue(now)) ? leader : routes.AnyReady(operation.Attempts, leader) ?? leader;
    }

    /// <summary>While a leader is silent, now and then one operation goes to another node, whose refusal says who leads.</summary>
    private bool IsProbeDue(long now)
    {
        long last = Volatile.Read(ref _lastProbe);
        return now - last > _patience / 4 && Interlocked.CompareExchange(ref _lastProbe, now, last) == last;
    }

    private bool TrySendAgain(OperationRef reference, long now)
    {
        if (!reference.TryHold())
        {
            return true;
        }

        if (reference.Operation.Deadline <= now)
        {
            // This process may have stood still: what is sent now could arrive after everybody has forgotten the earlier attempts.
            reference.Release();
            return false;
        }

        NodeStream? stream = Choose(reference.Operation, now);
        reference.Release();
        return stream is not null && stream.TrySend(reference, now);
    }

    private void Park(OperationRef reference, long now)
    {
        if (!reference.TryHold())
        {
            return;
        }

        reference.Operation.NotBefore = now + _clock.Of(_backoff.After(Math.Max(1, reference.Operation.Attempts)));
        reference.Release();
        if (!_parked.TryAdd(reference))
        {
            End(reference, () => Failures.Disposed(reference.Operation.MayHaveHappened));
        }
    }

    private void Arm()
    {
        if (Volatile.Read(ref _armed) == 0 && Interlocked.Exchange(ref _armed, 1) == 0)
        {
            _timer.Change(s_tick, Timeout.InfiniteTimeSpan);
        }
    }

    /// <summary>Ends what has passed its deadline and sends what has paused long enough; runs on while anything is under way.</summary>
    private void Tick()
    {
        // Whoever starts an operation from here on sees that the timer is not set, or the operation is seen below.
        Interlocked.Exchange(ref _armed, 0);
        long now = _clock.Now;
        bool isBusy = false;
        List<ExpiredOperation> expired = [];
        foreach (NodeLink link in _links.All())
        {
            isBusy |= link.Current?.Scan(now, _patience, expired) ?? false;
        }

        foreach (ExpiredOperation operation in expired)
        {
            operation.Fail();
        }

        SendDue(isRouteNew: false);
        if (isBusy || _parked.Count > 0)
        {
            Arm();
        }
    }

    private void SendDue(bool isRouteNew)
    {
        if (_parked.Count == 0)
        {
            return;
        }

        long now = _clock.Now;
        List<OperationRef> due = [];
        List<OperationRef> expired = [];
        _parked.TakeDue(now, isRouteNew, due, expired);
        string? unreachable = expired.Count > 0 && !_links.Routes.IsAnyReady ? _links.Reachability() : null;
        foreach (OperationRef reference in expired)
        {
            End(reference, () => Failures.GaveUp(reference.Operation, unreachable));
        }

        foreach (OperationRef reference in due)
        {
            if (!TrySendAgain(reference, now))
            {
                if (reference.TryHold())
                {
                    reference.Operation.Attempts++;
                    reference.Release();
                }

                Park(reference, now);
            }
        }

        if (due.Count > 0)
        {
            // A tick that has looked at the streams just before has not seen them there.
            Arm();
        }
    }
}
