using System.Diagnostics;
using System.Security.Cryptography;
using Grpc.HealthCheck;
using Kahuna.Client.Connection;
using Kahuna.Server.Access;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Watches;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Hosting.Measurements;
using Kahuna.Server.Hosting.Membership;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Hosting.Page;
using Kahuna.Server.Observability;
using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Server.Transport;

namespace Kahuna.Server.Hosting;

/// <summary>
/// One node: opens the data, starts the loops, the peer links and the endpoints, and stops them in the right order.
/// Owned by the program or by an embedded cluster; its methods may be called from any thread.
/// </summary>
internal sealed class KahunaNode : IAsyncDisposable
{
    /// <summary>
    /// How long a stopping node waits for another node to take over its leadership and for its accepted operations to
    /// end.
    /// </summary>
    internal static readonly TimeSpan DrainLimit = TimeSpan.FromSeconds(5);

    /// <summary>Election timeouts after which a starting node reports that it has no majority.</summary>
    private const int ElectionsWithoutMajority = 10;

    /// <summary>Time between two looks at what need not be seen at once, in ms.</summary>
    private const int WatchMs = 200;

    /// <summary>
    /// The clock of the partitions. It goes on while the machine is suspended, where the system has such a clock: a
    /// node must see that it was away.
    /// </summary>
    private static readonly TimeProvider s_clock = SuspendAwareTime.InPlaceOf(TimeProvider.System);

    private readonly ILogger _log;
    private readonly ThrottledLoggers _loggers;
    private readonly CertificateWatch _certificates;
    private readonly LeadershipLog _leadership;
    private readonly NodeListener _listener;
    private readonly HeapTrimmer _heapTrimmer = new(
        static () => GC.GetTotalAllocatedBytes(), ProcessMemory.CompactionBytes, ProcessMemory.TrimAll,
        ProcessMemory.Compact);
    private readonly NodeStorage _storage;
    private readonly CheckpointService _keeper;
    private readonly CheckpointThread _stateThread;
    private readonly VotingRights _rights;
    private readonly ClusterView _view;
    private readonly PeerLinks _links;
    private readonly DirectLinks _directLinks;
    private readonly AddressLimiter _addresses;
    private readonly OperationReports _reports;
    private readonly OperationTimes[]? _times;
    private readonly LoopSet _loops;
    private readonly WatchHub _watches;
    private readonly TransactionSettler _settler;
    private readonly CancellationTokenSource _stopping = new();
    private readonly TaskCompletionSource<Exception> _fatal = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly HealthServiceImpl _health = new();
    private readonly IFatalErrors _fatalErrors;
    private Forwarder? _forwarder;
    private NodeMetrics? _metrics;
    private NodePage? _page;
    private WebApplication? _app;
    private NodeTicker? _ticker;
    private NodeTicker? _watcher;
    private Timer? _slowTicker;
    private int _stopped;
    private int _dead;

    private KahunaNode(
        NodeOptions options,
        MemberRegistry members,
        NodeStorage storage,
        ThrottledLoggers loggers,
        IFatalErrors fatalErrors)
    {
        Options = options;
        _fatalErrors = fatalErrors;
        _storage = storage;
        _loggers = loggers;
        _log = loggers.CreateLogger("Kahuna.Node");
        NodeId[] voters = [.. options.Peers.Select(peer => peer.Id)];
        _view = new ClusterView(NodeLinks.IdentityOf(options), hasEphemeral: true);
        _view.Failed += (group, error) => _log.PartitionStopped(group.Title, error);
        _view.StorageDead += OnStorageDead;
        _certificates = NodeCertificates.Watch(options, _log);
        Access = new NodeAccess(options, _log);
        _listener = new NodeListener(
            options.Listen, _certificates.Tls, NodeLinks.CertificatesOf(options, Access.ClientAuthorities));
        PeerRelay relay = new();
        PeerLinksOptions linksOptions = NodeLinks.OptionsOf(
            options, _certificates.Tls, Access.Secrets, members, fatalErrors) with
        {
            ClusterLevel = () => _view.FeatureLevel,
            LevelUnsupported = (level, peer) => OnStorageDead(
                new FeatureLevelException(level, options.Features, $"node {peer} says so")),
        };
        _links = new PeerLinks(linksOptions, DeafReceiver.Around(relay, options), loggers);
        _addresses = NodeLinks.AddressesOf(options, _links);
        _directLinks = new DirectLinks(
            _certificates.Tls, options.DirectLinks, loggers.CreateLogger("Kahuna.Transport"));
        ulong start = (ulong)Stopwatch.GetTimestamp() ^ ((ulong)options.NodeId.Value << 48);
        HashSecret = HashSecret.From(RandomNumberGenerator.GetBytes(HashSecret.Bytes));
        StateLimits limits = new() { HashSecret = HashSecret, Features = options.Features };
        _keeper = new CheckpointService(
            NodeLoops.CheckpointOptionsOf(options, limits, start),
            new CheckpointPorts(storage.States, storage.Log, _links, s_clock, _log.Progress)
            {
                Rest = ProcessMemory.Trim,
            },
            OnStorageDead);
        _stateThread = new CheckpointThread(_keeper, fatalErrors);
        storage.Trace?.Started(voters.Length, options.Partitions, members.OwnDirectoryId);
        storage.Trace?.Failed += OnStorageDead;
        ILogStore log = storage.Trace?.Around(storage.Log) ?? storage.Log;
        IPeerTransport links = storage.Trace?.Around(_links) ?? _links;
        ChangeLogs changes = new(_view.Layout, options.WatchHistoryBytes);
        _settler = new TransactionSettler(TimeProvider.System, loggers.CreateLogger(SettlingLog.Category));
        LoopOptions loopOptions = NodeLoops.OptionsOf(options, members, limits, start);
        _reports = new OperationReports(options.NodeId, options.Metrics, TimeProvider.System);
        _times = _reports.Times(loopOptions.Loops);
        _loops = new LoopSet(
            loopOptions,
            new LoopPorts(options.Partitions, s_clock, new InlineTurnScheduler(), log, links, _view)
            {
                States = storage.States,
                Memory = new EphemeralMemory(
                    options.EphemeralBytesMax, options.EphemeralPolicy == EphemeralPolicy.Evict),
                PersistentMemory = new PersistentMemory(options.PersistentBytesMax),
                Checkpoints = _keeper,
                FatalErrors = fatalErrors,
                Changes = changes,
                Settler = _settler,
                Trace = storage.Trace,
                Times = _times,
                Report = _log.Progress,
            });
        Access.Attach(_view, _loops);
        _watches = new WatchHub(changes, () => _loops.Now, new ReplyRoom());
        _keeper.Attach(_loops, _stateThread.Wake);
        relay.Receiver = _loops;
        _rights = new VotingRights(members, _loops, _view);
        _rights.Restored += _log.Restored;
        _rights.NotRecorded += _log.RestoredNotRecorded;
        _rights.Begin();
        members.Refused += sentence => OnStorageDead(new DataDirectoryException(sentence));
        _view.ReadCommitIndexFrom(index => _loops.Group(index).CommitIndex.Value);
        _view.ReadFeatureLevelFrom(() => _loops.FeatureLevel);
        _view.ReadTracesFrom(() => _reports.Traces is { Server.Contexts.IsOn: true });
        _leadership = new LeadershipLog(
            _view,
            () => voters.Count(voter => voter == options.NodeId || _links.IsUp(voter)),
            _log,
            loopOptions.ElectionTicks * ElectionsWithoutMajority);
        TickMs = loopOptions.TickMs;
    }

    public NodeOptions Options { get; }

    public ClusterView View => _view;

    /// <summary>Direct links of clients that are open.</summary>
    internal int DirectLinks => _directLinks.Open;

    /// <summary>Who may do what here.</summary>
    internal NodeAccess Access { get; }

    /// <summary>The secret of this node's hash tables. It must not leave the process.</summary>
    internal HashSecret HashSecret { get; }

    /// <summary>Figures of a group, by its index.</summary>
    internal PartitionMetrics Metrics(int index) => _loops.Group(index).Metrics;

    /// <summary>
    /// Completes with the reason when the node has failed, for example because its log is dead. The owner then stops
    /// it.
    /// </summary>
    public Task<Exception> Fatal => _fatal.Task;

    private int TickMs { get; }

    /// <summary>
    /// Starts a node. When it returns, the endpoints answer; <see cref="WaitReadyAsync"/> waits until the node can
    /// serve. Throws with a one-line message if the node cannot start.
    /// </summary>
    /// <param name="options">The node's options.</param>
    /// <param name="fatalErrors">Handles unexpected exceptions; null: <see cref="ProcessEnd"/>.</param>
    /// <param name="cancellationToken">Cancels the start.</param>
    public static async Task<KahunaNode> StartAsync(
        NodeOptions options, IFatalErrors? fatalErrors = null, CancellationToken cancellationToken = default)
    {
        ThrottledLoggers loggers = NodeLogging.Create(options.LogLevel, options.LogFormat);
        if (fatalErrors is null)
        {
            ProcessEnd.Prepare();
            fatalErrors = new ProcessEnd(loggers);
        }

        ILogger log = loggers.CreateLogger("Kahuna.Node");
        DataDirectoryIdentity identity = DataDirectoryIdentity.Open(options, log.Attention);
        options = options with { Partitions = identity.Partitions };
        NodeStorage storage = await NodeStorage.OpenAsync(options, identity, fatalErrors, log.Attention).ConfigureAwait(
            false);
        KahunaNode node;
        try
        {
            node = new(options, MemberRegistry.Open(options, identity), storage, loggers, fatalErrors);
        }
        catch
        {
            await storage.DisposeAsync().ConfigureAwait(false);
            throw;
        }

        try
        {
            await node.ServeAsync(cancellationToken).ConfigureAwait(false);
            return node;
        }
        catch
        {
            await node.DisposeAsync().ConfigureAwait(false);
            throw;
        }
    }

    /// <summary>Waits until every partition can be served from here.</summary>
    public async Task WaitReadyAsync(CancellationToken cancellationToken = default)
    {
        TaskCompletionSource changed = new(TaskCreationOptions.RunContinuationsAsynchronously);
        using IDisposable watch = _view.Watch(() => Volatile.Read(ref changed).TrySetResult());
        while (!_view.IsReady(out _))
        {
            await Volatile.Read(ref changed).Task.WaitAsync(cancellationToken).ConfigureAwait(false);
            Volatile.Write(ref changed, new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously));
        }
    }

    /// <summary>
    /// Stops gracefully: notifies clients, hands over leadership, finishes accepted operations, closes the log. A
    /// second call does nothing.
    /// </summary>
    public async ValueTask DisposeAsync()
    {
        if (Interlocked.Exchange(ref _stopped, 1) != 0)
        {
            return;
        }

        _view.BeginStop();
        await DrainAsync().ConfigureAwait(false);
        await _stopping.CancelAsync().ConfigureAwait(false);
        _loops.Close();
        if (_app is not null)
        {
            using CancellationTokenSource limit = new(DrainLimit);
            try
            {
                await _app.StopAsync(limit.Token).ConfigureAwait(false);
            }
            catch (OperationCanceledException)
            {
                // Connections that did not end in time are closed with the process.
            }

            await _app.DisposeAsync().ConfigureAwait(false);
        }

        IAsyncDisposable?[] timers = [_ticker, _watcher, _slowTicker];
        foreach (IAsyncDisposable timer in timers.OfType<IAsyncDisposable>())
        {
            await timer.DisposeAsync().ConfigureAwait(false);
        }

        await _reports.DisposeAsync().ConfigureAwait(false);
        if (_metrics is not null)
        {
            await _metrics.DisposeAsync().ConfigureAwait(false);
        }

        _page?.Dispose();
        _watches.Dispose();
        _leadership.Dispose();
        if (_forwarder is not null)
        {
            await _forwarder.DisposeAsync().ConfigureAwait(false);
        }

        _directLinks.Stop();
        await _links.DisposeAsync().ConfigureAwait(false);
        _stateThread.Dispose();
        await _storage.DisposeAsync().ConfigureAwait(false);
        _stopping.Dispose();
        Access.Dispose();
        _loggers.Dispose();
    }

    /// <summary>
    /// Ends the process, or what <see cref="IFatalErrors"/> does instead, with the reason from <see cref="Fatal"/>.
    /// </summary>
    public void EndProcess(Exception reason) =>
        _fatalErrors.Raise($"node {Options.NodeId}, which cannot go on", reason);

    private async Task ServeAsync(CancellationToken cancellationToken)
    {
        _forwarder = NodeLinks.ForwarderOf(Options, Access.Credential, _certificates.Tls, _loggers);
        RequestAdmission admission = new(new Router(_loops, _view), Options.ValueBytesMax)
        {
            Room = _watches.Room,
            Gate = Access.Gate,
            Traces = _reports.Traces?.Server,
            SamplesRoots = Options.Metrics is { IsOn: true, TraceRatio: > 0 },
        };
        // Only the node's options count: no appsettings.json, no ASPNETCORE_ variables, and no watcher of the files
        // below the current directory, which each write to a log would wake.
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(
            new WebApplicationOptions { ContentRootPath = AppContext.BaseDirectory });
        builder.Services.AddSingleton<ILoggerFactory>(_loggers);
        builder.Services.AddLogging();
        builder.WebHost.UseKestrelCore().ConfigureKestrel(_listener.Configure);
        builder.Services.AddKahunaPeers(_links, OnStorageDead, _addresses, _directLinks);
        builder.Services.AddSingleton<IHostLifetime, OwnerLifetime>();
        CallLimits limits = new()
        {
            MessageBytesMax = CallLimits.MessageBytesDefault + Options.ValueBytesMax,
            Room = _watches.Room,
            Stop = _stopping.Token,
        };
        builder.Services.AddKahunaGrpc(limits);
        AddServices(builder.Services, admission, Access.Credential);
        _app = builder.Build();
        HealthEndpoints.Map(_app, () => (_view.IsReady(out string reason), reason));
        MapPages(_app);
        SetHealth();
        _app.MapKahunaGrpc(
            limits, NodeServices.Described(), _loggers.CreateLogger("Kahuna.Grpc"), Access.Middleware,
            _reports.Traces?.Server);
        _app.MapNodeServices();
        Access.Map(_app);
        Access.Routes = _app;
        _loggers.IsStarting = true;
        await _app.StartAsync(cancellationToken).ConfigureAwait(false);
        _loggers.IsStarting = false;
        _stateThread.Start();
        _links.Start();
        _view.Watch(SetHealth);
        _ticker = new NodeTicker("ticks", TickLoops, TickMs);
        _watcher = new NodeTicker("watch", Watch, WatchMs);
        _slowTicker = new Timer(_ => SlowTick(), null, TimeSpan.Zero, CertificateWatch.Interval);
        _ = GcPauses.Shared;
        StartReport.Write(Options, _log);
        _ = Access.BootstrapAsync(_stopping.Token);
        _ = Access.RecoverAsync(_stopping.Token);
    }

    /// <summary>What operators and their tools read.</summary>
    private void MapPages(WebApplication app)
    {
        DoorStatus door = new(_certificates.Tls, Access.ClientAuthorities, _addresses, TimeProvider.System)
        {
            Direct = _directLinks,
            Limits = (Options.PersistentBytesMax, Options.EphemeralBytesMax, Options.LogLimitBytes),
        };
        byte[] Status() => StatusEndpoint.Render(
            _view, index => _loops.Group(index).Metrics, _storage, _loops.MemoryBytes, _watches, door.Write);
        StatusEndpoint.Map(app, Status);
        if (Options.Metrics.IsOn)
        {
            _metrics = new NodeMetrics(Figures(), Options.Metrics, app.Services, _log.MetricsNotSent);
            new MetricsEndpoint(_metrics.Page).Map(app);
            SlowEndpoint.Map(app, _reports.Slow);
        }

        _page = new NodePage(
            Options, NodeLinks.CredentialOf(Options, Access.Credential, _certificates.Tls), Figures())
        {
            Status = Status,
            Slow = Options.Metrics.IsOn ? () => _reports.Slow.Render(NodeQuestion.SlowMax) : null,
        };
        _page.Map(app);
    }

    private NodeFigures Figures() => new(_view, _loops, _storage.Log, _keeper, _watches)
    {
        Links = _links,
        Direct = _directLinks,
        Tls = _certificates.Tls,
        Addresses = _addresses,
        Connections = () => _listener.Connections,
        Times = _times ?? [],
        Traces = _reports.Traces,
        Limits = (Options.PersistentBytesMax, Options.EphemeralBytesMax, Options.LogLimitBytes),
    };

    private void AddServices(IServiceCollection services, RequestAdmission admission, NodeCredential credential)
    {
        UnaryExecutor calls = new(admission, _forwarder!);
        NodeCoordinator coordinator = new(_forwarder!, TimeProvider.System);
        TransactionExecutor whole = new(calls, admission.Router, coordinator);
        admission.Forward = new StreamForwarding(calls).Begin;
        _settler.Start(
            async (command, waitMs, ct) =>
            {
                CallerOfCall.Current = Caller.Node;
                return await calls.OutcomeAsync(command, waitMs, ct).ConfigureAwait(false);
            },
            admission.Router.GroupIndexOf,
            static work => ThreadPool.UnsafeQueueUserWorkItem(static work => work(), work, preferLocal: false),
            _stopping.Token);
        ScanPages scans = new(calls.ExecuteAsync, Options.Partitions);
        services.AddSingleton(new KeyValuesService(
            calls, scans,
            new KeyValueBatches(calls, whole, Options.ValueBytesMax), new RangeDeletes(calls, Options.Partitions),
            new KeyValueWatches(
                calls.ExecuteAsync, Options.Partitions, Options.ClusterId, _watches, scans.Budget, Access.Gate)));
        services.AddSingleton(new TransactionsService(whole, Options.ValueBytesMax));
        services.AddSingleton(new ScriptsService(new ScriptExecutor(calls, coordinator)));
        services.AddSingleton(new SequencesService(calls, Options.Partitions));
        services.AddSingleton(new LocksService(
            new LockExecutor(calls.ExecuteAsync, s_clock), Options.Partitions, _stopping.Token));
        services.AddSingleton(new ClusterService(
            _view, admission, credential, _stopping.Token, _watches,
            new LinkOffers(_directLinks.Offer, _directLinks.Withdraw)));
        AdminService administration = Access.Administration();
        administration.Transfers = new(_view, _loops.Move, _forwarder!.CallAsync, TimeProvider.System);
        services.AddSingleton(administration);
        services.AddSingleton(_health);
    }

    private void SetHealth() => NodeServices.SetHealth(_health, _view.IsReady(out _));

    private void OnStorageDead(Exception error)
    {
        // Logged once, and before the owner can end the process.
        if (Interlocked.Exchange(ref _dead, 1) == 0)
        {
            _log.NodeDead(error.Message);
            _fatal.TrySetResult(error);
        }
    }

    private void TickLoops()
    {
        try
        {
            foreach (PartitionLoop loop in _loops.Loops)
            {
                loop.PostTick();
            }
        }
        catch (Exception error)
        {
            _fatalErrors.Raise("a tick", error);
        }
    }

    /// <summary>What may wait for a disk or a reader of log lines, which keeps no loop from its ticks.</summary>
    private void Watch()
    {
        try
        {
            _rights.TryRejoin();
            _leadership.Check();
            Access.Tick(WatchMs);
        }
        catch (Exception error)
        {
            _fatalErrors.Raise("a tick", error);
        }
    }

    private void SlowTick()
    {
        lock (_certificates)
        {
            _certificates.Check();
            Access.Check();
            _listener.TrimMemory();
            _storage.Log.LetGo();
            _heapTrimmer.Check();
        }
    }

    private async Task DrainAsync()
    {
        if (_ticker is null || _fatal.Task.IsCompleted)
        {
            return;
        }

        _loops.Drain();
        long began = Stopwatch.GetTimestamp();
        while (Stopwatch.GetElapsedTime(began) < DrainLimit && !_loops.IsDrained)
        {
            await Task.Delay(TickMs).ConfigureAwait(false);
        }
    }
}
