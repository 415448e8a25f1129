using Kahuna.Client.Outcomes;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Routing;
using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Connection;

/// <summary>
/// Routes operations to the leaders of their keys, retries failed attempts under their session number and keeps
/// deadlines. Owned by the client; any thread. Holds no lock while operations end.
/// </summary>
internal sealed class ClusterConnection : IAsyncDisposable
{
    // The precision of deadlines and pauses. The timer runs only while operations are pending.
    private static readonly TimeSpan s_tick = TimeSpan.FromMilliseconds(20);

    /// <summary>How long disposal waits for the loops, which normally end within milliseconds.</summary>
    private static readonly TimeSpan s_partingTime = TimeSpan.FromSeconds(2);

    private readonly ConnectionSettings _settings;
    private readonly ConnectionPorts _ports;
    private readonly ClusterLinks _links;
    private readonly DetachedLoops _loops;
    private readonly Backoff _backoff;
    private readonly ConnectionClock _clock;
    private readonly ParkedOperations _parked = new();
    private readonly ITimer _timer;
    private readonly long _requestTimeout;
    private readonly long _patience;
    private readonly Relocation _relocation;
    private readonly RouteChoice _routeChoice;
    private volatile bool _isClosed;
    private int _isDisposed;
    private int _armed;
    private int _news;

    public ClusterConnection(ConnectionSettings settings, ConnectionPorts ports, ILogger logger)
    {
        _settings = settings;
        _ports = ports;
        _clock = new ConnectionClock(ports.Time);
        _loops = new DetachedLoops(ports.Context);
        _links = new ClusterLinks(this, settings, ports, logger);
        _backoff = new Backoff(settings.BackoffMin, settings.BackoffMax, ports.Seed);
        _requestTimeout = _clock.Of(settings.RequestTimeout);
        _patience = _clock.Of(ports.Patience);
        _routeChoice = new RouteChoice(_links, settings.AsksToForward, _patience);
        _relocation = new Relocation(_clock, _patience, settings.AsksToForward);
        using (ExecutionContext.IsFlowSuppressed() ? default(AsyncFlowControl?) : ExecutionContext.SuppressFlow())
        {
            _timer = ports.Time.CreateTimer(
                static state => ((ClusterConnection)state!).Tick(),
                this,
                Timeout.InfiniteTimeSpan,
                Timeout.InfiniteTimeSpan);
        }
    }

    /// <summary>The client's time.</summary>
    public TimeProvider Time => _ports.Time;

    /// <summary>
    /// Starts an operation. The task completes with its result or failure, at the request timeout at the latest.
    /// </summary>
    public ValueTask<TResult> Run<TResult>(Operation<TResult> operation, CancellationToken ct)
        where TResult : struct, IOperationResult<TResult>
    {
        operation.Measure(_ports.Time);
        ValueTask<TResult> task = operation.Start(
            _settings.InlineContinuations || operation.Request.EndsInline, isHosted: !CapturesContext, ct);
        OperationRef reference = operation.Reference;
        Exception? refusal = _isClosed ? OperationErrors.Closed() : operation.Request.Refusal;
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

        int news = Volatile.Read(ref _news);
        long now = _clock.Now;
        operation.Attempt.HoldUntil = now + _clock.OfMs(operation.Request.HoldMs);
        long allowed = operation.Request.Patience is { } patience
            ? Math.Min(_clock.Of(patience), _requestTimeout)
            : _requestTimeout;
        operation.Attempt.Deadline = operation.Attempt.HoldUntil + allowed;
        NodeStream? stream = _routeChoice.Choose(operation, now);
        if (stream is { IsOverfull: true })
        {
            Refuse(reference);
        }
        else if (stream is null || !stream.TrySend(reference, now))
        {
            Park(reference, news, _settings.MaxWaiting);
        }

        Arm();
        return task;
    }

    /// <summary>Streams to nodes that are ready.</summary>
    public long OpenStreams => _links.All().Count(static link => link.Ready is not null);

    /// <summary>Operations that have begun and not ended.</summary>
    public long Pending => _parked.Count + _links.All().Sum(static link => link.Current?.Pending ?? 0);

    /// <summary>The request timeout.</summary>
    public TimeSpan RequestLimit => _settings.RequestTimeout;

    /// <summary>The request timeout in ticks of the clock.</summary>
    public long RequestTimeout => _requestTimeout;

    /// <summary>True when continuations run in the context that the ports name.</summary>
    public bool CapturesContext => _ports.Context is not null;

    /// <summary>Starts work that is detached from the caller.</summary>
    public Task<T> Start<T>(Func<Task<T>> work) => _loops.Start(work);

    /// <summary>
    /// The cluster as the connected nodes see it. Waits for the first node for at most the connect timeout.
    /// </summary>
    public async ValueTask<ClusterDescription> DescribeAsync(CancellationToken ct)
    {
        if (_isClosed)
        {
            throw OperationErrors.Closed();
        }

        _links.Start();
        return (await _links.ConnectedAsync(ct).ConfigureAwait(_ports.Context is not null)).Describe();
    }

    /// <summary>The links to the nodes.</summary>
    public ClusterLinks Links => _links;

    /// <summary>The version of the known map of slots; 0 while none is known.</summary>
    public ulong SlotMapVersion => _links.Routes.Map.Slots?.Version ?? 0;

    /// <summary>The known nodes and the map.</summary>
    public RouteTable Routes => _links.Routes;

    /// <summary>True when the connected nodes serve ephemeral keys.</summary>
    public bool ServesEphemeral => _links.Routes.Map is { } map && map.Routes > map.Partitions;

    /// <summary>The number of partitions, for an operation that asks all of them.</summary>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<int> PartitionsAsync(CancellationToken ct) =>
        (await SlotsAsync(ct).ConfigureAwait(CapturesContext)).Partitions;

    /// <summary>Which partition owns which slots.</summary>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<SlotMap> SlotsAsync(CancellationToken ct)
    {
        try
        {
            await DescribeAsync(ct).ConfigureAwait(CapturesContext);
            return _links.Routes.Map.Slots ?? throw OperationErrors.Closed();
        }
        catch (OperationCanceledException) when (ct.IsCancellationRequested)
        {
            throw new KahunaCanceledException(OperationOutcome.DidNotHappen, ct);
        }
    }

    /// <inheritdoc/>
    public ValueTask DisposeAsync() => DisposeAsync(Task.CompletedTask);

    /// <summary>Closes the connection.</summary>
    /// <param name="users">What ends besides its own loops before the network is disposed.</param>
    public async ValueTask DisposeAsync(Task users)
    {
        if (Interlocked.Exchange(ref _isDisposed, 1) != 0)
        {
            return;
        }

        _isClosed = true;
        Task ended = Task.WhenAll(_links.StopAsync("the client was disposed"), users);
        _parked.Close().ForEach(
            static reference => End(reference, () => OperationErrors.Disposed(reference.Operation.MayHaveHappened)));

        await _timer.DisposeAsync().ConfigureAwait(_ports.Context is not null);
        try
        {
            await ended.WaitAsync(s_partingTime, _ports.Time).ConfigureAwait(_ports.Context is not null);
        }
        catch (TimeoutException)
        {
            // Application code on a stream's reader, or a starved pool, delays a loop. Its stream is aborted; it ends
            // when it can.
        }

        await _ports.Channel.DisposeAsync().ConfigureAwait(_ports.Context is not null);
    }

    /// <summary>A node connected or a leader changed: retries the operations that wait for either.</summary>
    public void OnRoutesChanged()
    {
        Interlocked.Increment(ref _news);
        _relocation.OnRoutesChanged(_clock.Now);
        SendDue(isRouteNew: true);
        Arm();
    }

    /// <summary>A link could not connect. Fails the waiting operations if no further attempt can succeed.</summary>
    public void OnLinkFailed()
    {
        if (_links.Objection() is { } objection)
        {
            foreach (OperationRef reference in _parked.TakeAll())
            {
                End(reference, () => OperationErrors.Untrusted(objection, reference.Operation.MayHaveHappened));
            }
        }
    }

    /// <summary>
    /// No node lets the client in: fails the waiting operations. Later ones wait for the next attempt to connect.
    /// </summary>
    /// <param name="failure">The error of an operation, which may have happened or not.</param>
    public void OnNotLetIn(Func<bool, KahunaException> failure)
    {
        foreach (OperationRef reference in _parked.TakeAll())
        {
            End(reference, () => failure(reference.Operation.MayHaveHappened));
        }
    }

    /// <summary>
    /// Sends an operation again under its session number: at once if another route is known, otherwise after a pause.
    /// </summary>
    public void OnRefused(NodeLink from, OperationRef reference, in Refusal refusal)
    {
        if (!reference.TryHold())
        {
            return;
        }

        (OutcomeStatus status, int hintedNodeId) = (refusal.Status, refusal.HintedNodeId);
        int news = Volatile.Read(ref _news);
        Operation operation = reference.Operation;
        if ((status == OutcomeStatus.SessionUnknown && !reference.TryRenumber())
            || (status == OutcomeStatus.Unauthenticated && !reference.TryRenew(from.Credentials)))
        {
            return;
        }

        // The node is left, and its next stream is opened with renewed credentials.
        status = status == OutcomeStatus.Unauthenticated ? OutcomeStatus.Unavailable : status;

        operation.Attempt.Count++;
        operation.LastRefusal = status;
        bool isElsewhere = hintedNodeId != 0 && hintedNodeId != from.NodeId && operation.Attempt.Count <= 3;
        operation.Attempt.HintedNodeId = isElsewhere ? hintedNodeId : 0;
        bool mayPassAtOnce = OutcomeStatuses.RetryOf(status) is RetryRule.AnotherNode or RetryRule.AtOnce;
        int route = operation.Attempt.Route;
        bool isFollowed = status is OutcomeStatus.Unknown or OutcomeStatus.NotLeader && IsLedElsewhere(operation, from);
        isFollowed |= status == OutcomeStatus.SlotMoved && IsMapNewer(operation);
        operation.Retried(isElsewhere || isFollowed);
        bool atOnce = isElsewhere || isFollowed || (mayPassAtOnce && operation.Attempt.Count == 1);

        // An operation that may have happened always waits: failing it would leave its outcome unknown.
        int waitingMax = operation.MayHaveHappened ? int.MaxValue : _settings.MaxWaiting;
        reference.Release();
        if (status == OutcomeStatus.NotLeader && route >= 0)
        {
            _links.CorrectLeader(from, route, refusal);
        }

        if (!atOnce || !TrySendAgain(reference, _clock.Now))
        {
            Park(reference, news, waitingMax);
        }

        Arm();
    }

    /// <summary>
    /// True when the map names another leader. After three attempts only a newer term counts, so that two nodes that
    /// name each other are not asked in turn forever.
    /// </summary>
    private bool IsLedElsewhere(Operation operation, NodeLink from)
    {
        RouteTable routes = _links.Routes;
        return routes.Live(operation.Attempt.Route) is { } leader
            && leader != from.Ready
            && (operation.Attempt.Count <= 3 || routes.Map[operation.Attempt.Route].Term > operation.Attempt.Term);
    }

    /// <summary>
    /// True when the map gives the key to another partition than the one that refused it. The node's claim of a newer
    /// map does not count until that map is here: the operation waits for it, or for its pause. After three attempts it
    /// always waits.
    /// </summary>
    private bool IsMapNewer(Operation operation) =>
        operation.Attempt.Count <= 3
            && _links.Routes.Map.RouteOf(operation.Key, operation.Request.Durability) != operation.Attempt.Route;

    private static void End(OperationRef reference, Func<Exception> failure)
    {
        if (reference.TryEnd())
        {
            reference.Operation.Fail(failure());
        }
    }

    private bool TrySendAgain(OperationRef reference, long now)
    {
        if (!reference.TryHold())
        {
            return true;
        }

        if (reference.Operation.Attempt.Deadline <= now)
        {
            // The process may have been paused: an attempt sent now could arrive after the servers have forgotten the
            // earlier ones.
            reference.Release();
            return false;
        }

        NodeStream? stream = _routeChoice.Choose(reference.Operation, now);
        reference.Release();
        return stream is not null && stream.TrySend(reference, now);
    }

    /// <summary>
    /// Parks an operation until a node or leader changes or its pause ends. <paramref name="news"/> is the count of
    /// changes before its route was chosen; a later change did not find the operation here.
    /// </summary>
    private void Park(OperationRef reference, int news, int countMax = int.MaxValue)
    {
        if (TryPark(reference, news, countMax))
        {
            SendDue(isRouteNew: true);
        }
    }

    /// <summary>
    /// As <see cref="Park"/>; true when a change came meanwhile and the parked operations must be tried again.
    /// </summary>
    private bool TryPark(OperationRef reference, int news, int countMax = int.MaxValue)
    {
        if (!reference.TryHold())
        {
            return false;
        }

        reference.Operation.Attempt.NotBefore = _clock.Now
            + _clock.Of(_backoff.After(Math.Max(1, reference.Operation.Attempt.Count)));
        reference.Release();
        if (!_parked.TryAdd(reference, countMax))
        {
            Refuse(reference);
            return false;
        }

        // Only after the operation is in the list: a link that fails from here on finds it.
        OnLinkFailed();
        if (!_links.Routes.IsAnyReady)
        {
            _links.Want();
        }

        return Volatile.Read(ref _news) != news;
    }

    /// <summary>Fails an operation because the client is closed or too many operations wait.</summary>
    private void Refuse(OperationRef reference) => End(reference, () => _isClosed
        ? OperationErrors.Disposed(reference.Operation.MayHaveHappened)
        : OperationErrors.TooManyWaiting(
            _settings.MaxWaiting, _links.Routes.IsAnyReady ? null : _links.Reachability()));

    private void Arm()
    {
        if (Volatile.Read(ref _armed) == 0 && Interlocked.Exchange(ref _armed, 1) == 0)
        {
            _timer.Change(s_tick, Timeout.InfiniteTimeSpan);
        }
    }

    /// <summary>
    /// Fails operations past their deadline and sends those whose pause is over. Runs again while any are pending.
    /// </summary>
    private void Tick()
    {
        // A caller that starts an operation from here on finds the timer unset, or its operation is found below.
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

        SendMoved(_relocation.Take(_links.Routes, now), now);
        SendDue(isRouteNew: false);
        if (isBusy || _parked.Count > 0)
        {
            Arm();
        }
    }

    /// <summary>Sends operations again that a former leader or a silent node has not answered.</summary>
    private void SendMoved(List<OperationRef> moved, long now)
    {
        foreach (OperationRef reference in moved)
        {
            if (!reference.TryHold())
            {
                continue;
            }

            reference.Operation.Attempt.Count++;
            reference.Operation.LastRefusal = OutcomeStatus.Unset;
            reference.Operation.Retried(isMove: true);
            reference.Operation.Attempt.HintedNodeId = 0;
            reference.Release();
            int news = Volatile.Read(ref _news);
            if (!TrySendAgain(reference, now))
            {
                Park(reference, news);
            }
        }

        if (moved.Count > 0)
        {
            Arm();
        }
    }

    private void SendDue(bool isRouteNew)
    {
        for (bool isDue = _parked.Count > 0; isDue; isRouteNew = true)
        {
            isDue = TrySendDue(isRouteNew);
        }
    }

    /// <summary>
    /// Sends the operations whose pause is over, or all that wait for a route. True when a change came meanwhile, so
    /// that it must be called again.
    /// </summary>
    private bool TrySendDue(bool isRouteNew)
    {
        long now = _clock.Now;
        List<OperationRef> due = [];
        List<OperationRef> expired = [];
        _parked.TakeDue(now, isRouteNew, due, expired);
        string? unreachable = expired.Count > 0 && !_links.Routes.IsAnyReady ? _links.Reachability() : null;
        foreach (OperationRef reference in expired)
        {
            End(reference, () => OperationErrors.GaveUp(reference.Operation, unreachable));
        }

        bool isNews = false;
        foreach (OperationRef reference in due)
        {
            int news = Volatile.Read(ref _news);
            if (!TrySendAgain(reference, now))
            {
                if (reference.TryHold())
                {
                    reference.Operation.Attempt.Count++;
                    reference.Release();
                }

                isNews |= TryPark(reference, news);
            }
        }

        if (due.Count > 0)
        {
            // A tick that has just scanned the streams has not found these operations there.
            Arm();
        }

        return isNews;
    }
}

/// <summary>Chooses the stream for an attempt. Owned by the <see cref="ClusterConnection"/>; any thread.</summary>
/// <param name="links">The links and the map.</param>
/// <param name="asksToForward">While the leader is unreachable, another node is asked to forward operations.</param>
/// <param name="patience">How long a node may be silent, in ticks of the clock.</param>
internal sealed class RouteChoice(ClusterLinks links, bool asksToForward, long patience)
{
    private long _lastProbe;

    /// <summary>
    /// The leader's stream, or any node's while no leader is reachable; null for none. Sets the attempt's route, term
    /// and epoch, and whether it is forwarded. The caller holds the operation.
    /// </summary>
    public NodeStream? Choose(Operation operation, long now)
    {
        RouteTable routes = links.Routes;
        operation.Attempt.Route = operation.Request.FixedPartition is { } partition
            ? routes.Map.RouteOf(partition, operation.Request.Durability)
            : routes.Map.RouteOf(operation.Key, operation.Request.Durability);
        operation.Attempt.IsForwarded = false;
        operation.Cluster = routes.Map.ClusterTag;
        PartitionRoute known = operation.Attempt.Route < 0 ? default : routes.Map[operation.Attempt.Route];
        (operation.Attempt.Term, operation.Attempt.Epoch) = (known.Term, known.Epoch);
        if (operation.Attempt.HintedNodeId != 0)
        {
            NodeStream? hinted = routes.Link(operation.Attempt.HintedNodeId)?.Ready;
            operation.Attempt.HintedNodeId = 0;
            if (hinted is { IsSuspect: false })
            {
                return hinted;
            }
        }

        if (routes.Map.Partitions == 0)
        {
            return null;
        }

        NodeLink? link = routes.Leader(operation.Attempt.Route);
        NodeStream? leader = link?.Ready;
        if (leader is null)
        {
            link?.Want();
        }

        if (leader is not null && !(leader.IsSuspect && (asksToForward || IsProbeDue(now))))
        {
            return leader;
        }

        NodeStream? other = routes.AnyReady(operation.Attempt.Count, leader);
        if (other is null or { IsSuspect: true })
        {
            return leader ?? other;
        }

        // A leader that was just lost has a successor soon, and every node reports it. One that stays unreachable may
        // be so for this client only.
        operation.Attempt.IsForwarded = asksToForward
            && link is not null
            && (leader is not null || now - link.UnreadySince > patience);
        return other;
    }

    /// <summary>
    /// While a leader is silent, one operation from time to time goes to another node, whose refusal names the leader.
    /// </summary>
    private bool IsProbeDue(long now)
    {
        long last = Volatile.Read(ref _lastProbe);
        return now - last > patience / 4 && Interlocked.CompareExchange(ref _lastProbe, now, last) == last;
    }
}
