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

    /// <summary>For so long disposal waits for the loops, which end within milliseconds when nothing holds them up.</summary>
    private static readonly TimeSpan s_partingTime = TimeSpan.FromSeconds(2);

    private readonly ConnectionSettings _settings;
    private readonly ConnectionPorts _ports;
    private readonly ClusterLinks _links;
    private readonly Loops _loops;
    private readonly Backoff _backoff;
    private readonly ConnectionClock _clock;
    private readonly ParkedOperations _parked = new();
    private readonly ITimer _timer;
    private readonly long _requestTimeout;
    private readonly long _patience;
    private readonly Relocation _relocation;
    private readonly Ways _ways;
    private volatile bool _isClosed;
    private int _isDisposed;
    private int _armed;
    private int _news;

    public ClusterConnection(ConnectionSettings settings, ConnectionPorts ports, ILogger logger)
    {
        _settings = settings;
        _ports = ports;
        _clock = new ConnectionClock(ports.Time);
        _loops = new Loops(ports.Context);
        _links = new ClusterLinks(this, settings, ports, logger);
        _backoff = new Backoff(settings.BackoffMin, settings.BackoffMax, ports.Seed);
        _requestTimeout = _clock.Of(settings.RequestTimeout);
        _patience = _clock.Of(ports.Patience);
        _ways = new Ways(_links, settings.AsksToForward, _patience);
        _relocation = new Relocation(_clock, _patience, settings.AsksToForward);
        using (ExecutionContext.IsFlowSuppressed() ? default(AsyncFlowControl?) : ExecutionContext.SuppressFlow())
        {
            _timer = ports.Time.CreateTimer(static state => ((ClusterConnection)state!).Tick(), this, Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
        }
    }

    /// <summary>Starts an operation; the task ends with its result or failure, at the request timeout at the latest.</summary>
    public ValueTask<TResult> Run<TResult>(Operation<TResult> operation, CancellationToken ct)
        where TResult : struct, IOperationResult<TResult>
    {
        ValueTask<TResult> task = operation.Start(_settings.InlineContinuations || operation.EndsInline, isHosted: !CapturesContext, ct);
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

        int news = Volatile.Read(ref _news);
        long now = _clock.Now;
        operation.HoldUntil = now + _clock.OfMs(operation.HoldMs);
        operation.Deadline = operation.HoldUntil + (operation.Patience is { } patience ? Math.Min(_clock.Of(patience), _requestTimeout) : _requestTimeout);
        NodeStream? stream = _ways.Choose(operation, now);
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

    /// <summary>How long an operation may take altogether, in ticks of the clock.</summary>
    public long RequestTimeout => _requestTimeout;

    /// <summary>Code after an await goes on in the context that the ports name.</summary>
    public bool CapturesContext => _ports.Context is not null;

    /// <summary>Begins something away from the caller.</summary>
    public Task<T> Start<T>(Func<Task<T>> work) => _loops.Start(work);

    /// <summary>The cluster as the connected nodes see it; waits for the first node for at most the connect timeout.</summary>
    public async ValueTask<ClusterDescription> DescribeAsync(CancellationToken ct)
    {
        ObjectDisposedException.ThrowIf(_isClosed, typeof(KahunaClient));
        _links.Start();
        return (await _links.ConnectedAsync(ct).ConfigureAwait(_ports.Context is not null)).Describe();
    }

    /// <summary>The nodes that answered serve ephemeral keys, too.</summary>
    public bool ServesEphemeral => _links.Routes.Map is { } map && map.Routes > map.Partitions;

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
        _parked.Close().ForEach(static reference => End(reference, () => Failures.Disposed(reference.Operation.MayHaveHappened)));

        await _timer.DisposeAsync().ConfigureAwait(_ports.Context is not null);
        try
        {
            await ended.WaitAsync(s_partingTime, _ports.Time).ConfigureAwait(_ports.Context is not null);
        }
        catch (TimeoutException)
        {
            // Code of the application that runs on a stream's reader, or a starved pool, holds a loop up. Its stream is aborted; it ends when it can.
        }

        await _ports.Channel.DisposeAsync().ConfigureAwait(_ports.Context is not null);
    }

    /// <summary>A node came or a leader changed: what waits for either is tried again.</summary>
    public void OnRoutesChanged()
    {
        Interlocked.Increment(ref _news);
        _relocation.OnRoutesChanged(_clock.Now);
        SendDue(isRouteNew: true);
        Arm();
    }

    /// <summary>A link could not connect. When no further attempt can succeed, nothing waits for one.</summary>
    public void OnLinkFailed()
    {
        if (_links.Objection() is { } objection)
        {
            foreach (OperationRef reference in _parked.TakeAll())
            {
                End(reference, () => Failures.Untrusted(objection, reference.Operation.MayHaveHappened));
            }
        }
    }

    /// <summary>An operation goes out again, under the number that it has: at once where another way is known, else after a pause.</summary>
    public void OnRefused(NodeLink from, OperationRef reference, OutcomeStatus status, int hintedNodeId)
    {
        if (!reference.TryHold())
        {
            return;
        }

        int news = Volatile.Read(ref _news);
        Operation operation = reference.Operation;
        if (status == OutcomeStatus.SessionUnknown && !reference.TryRenumber())
        {
            return;
        }

        operation.Attempts++;
        operation.LastRefusal = status;
        bool isElsewhere = hintedNodeId != 0 && hintedNodeId != from.NodeId && operation.Attempts <= 3;
        operation.HintedNodeId = isElsewhere ? hintedNodeId : 0;
        bool mayPassAtOnce = status is OutcomeStatus.Unavailable or OutcomeStatus.SessionUnknown;
        int route = operation.Route;
        bool isFollowed = status is OutcomeStatus.Unknown or OutcomeStatus.NotLeader && IsLedElsewhere(operation, from);
        bool atOnce = isElsewhere || isFollowed || (mayPassAtOnce && operation.Attempts == 1);

        // What may have happened waits in any case: failing it would leave its end open.
        int waitingMax = operation.MayHaveHappened ? int.MaxValue : _settings.MaxWaiting;
        reference.Release();
        if (status == OutcomeStatus.NotLeader && route >= 0)
        {
            _links.CorrectLeader(from, route, hintedNodeId);
        }

        if (!atOnce || !TrySendAgain(reference, _clock.Now))
        {
            Park(reference, news, waitingMax);
        }

        Arm();
    }

    /// <summary>The map names another leader by now. After three attempts only a term that is news counts, so that nodes that name each other are not asked in a circle.</summary>
    private bool IsLedElsewhere(Operation operation, NodeLink from)
    {
        RouteTable routes = _links.Routes;
        return routes.Live(operation.Route) is { } leader && leader != from.Ready && (operation.Attempts <= 3 || routes.Map[operation.Route].Term > operation.Term);
    }

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

        if (reference.Operation.Deadline <= now)
        {
            // This process may have stood still: what is sent now could arrive after everybody has forgotten the earlier attempts.
            reference.Release();
            return false;
        }

        NodeStream? stream = _ways.Choose(reference.Operation, now);
        reference.Release();
        return stream is not null && stream.TrySend(reference, now);
    }

    /// <summary>Lets an operation wait for news of nodes and leaders, or for the end of a pause. <paramref name="news"/> is how many there were before its way was looked for: later ones did not find it here.</summary>
    private void Park(OperationRef reference, int news, int countMax = int.MaxValue)
    {
        if (TryPark(reference, news, countMax))
        {
            SendDue(isRouteNew: true);
        }
    }

    /// <summary>As <see cref="Park"/>; true: there was news, for which what waits is to be tried again.</summary>
    private bool TryPark(OperationRef reference, int news, int countMax = int.MaxValue)
    {
        if (!reference.TryHold())
        {
            return false;
        }

        reference.Operation.NotBefore = _clock.Now + _clock.Of(_backoff.After(Math.Max(1, reference.Operation.Attempts)));
        reference.Release();
        if (!_parked.TryAdd(reference, countMax))
        {
            Refuse(reference);
            return false;
        }

        // After it is there: a link that fails from here on sees it.
        OnLinkFailed();
        if (!_links.Routes.IsAnyReady)
        {
            _links.Want();
        }

        return Volatile.Read(ref _news) != news;
    }

    /// <summary>Nothing waits any more, or nothing more does.</summary>
    private void Refuse(OperationRef reference) => End(reference, () => _isClosed
        ? Failures.Disposed(reference.Operation.MayHaveHappened)
        : Failures.TooManyWaiting(_settings.MaxWaiting, _links.Routes.IsAnyReady ? null : _links.Reachability()));

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

        SendMoved(_relocation.Take(_links.Routes, now), now);
        SendDue(isRouteNew: false);
        if (isBusy || _parked.Count > 0)
        {
            Arm();
        }
    }

    /// <summary>Sends again what was under way at a node that does not lead any more, or is silent.</summary>
    private void SendMoved(List<OperationRef> moved, long now)
    {
        foreach (OperationRef reference in moved)
        {
            if (!reference.TryHold())
            {
                continue;
            }

            reference.Operation.Attempts++;
            reference.Operation.LastRefusal = OutcomeStatus.Unset;
            reference.Operation.HintedNodeId = 0;
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

    /// <summary>Sends what has paused long enough, or everything that waits; true: meanwhile there was news, for which it is to be called again.</summary>
    private bool TrySendDue(bool isRouteNew)
    {
        long now = _clock.Now;
        List<OperationRef> due = [];
        List<OperationRef> expired = [];
        _parked.TakeDue(now, isRouteNew, due, expired);
        string? unreachable = expired.Count > 0 && !_links.Routes.IsAnyReady ? _links.Reachability() : null;
        foreach (OperationRef reference in expired)
        {
            End(reference, () => Failures.GaveUp(reference.Operation, unreachable));
        }

        bool isNews = false;
        foreach (OperationRef reference in due)
        {
            int news = Volatile.Read(ref _news);
            if (!TrySendAgain(reference, now))
            {
                if (reference.TryHold())
                {
                    reference.Operation.Attempts++;
                    reference.Release();
                }

                isNews |= TryPark(reference, news);
            }
        }

        if (due.Count > 0)
        {
            // A tick that has looked at the streams just before has not seen them there.
            Arm();
        }

        return isNews;
    }
}
