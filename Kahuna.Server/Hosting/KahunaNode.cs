using System.Diagnostics;
using System.Net;
using System.Security.Cryptography;
using Grpc.HealthCheck;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Calls;
using Kahuna.Server.Api.Openings;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Hosting.Membership;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Observability;
using Kahuna.Server.Partitions;
using Kahuna.Server.Partitions.Ephemeral;
using Kahuna.Server.Partitions.States;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.Transport;
using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace Kahuna.Server.Hosting;

/// <summary>
/// One node: opens the data, starts the loops, the peer links and the endpoints, and stops them in the right order.
/// Owned by the program or by an embedded cluster; its methods may be called from any thread.
/// </summary>
internal sealed class KahunaNode : IAsyncDisposable
{
    /// <summary>How long a stopping node waits for its leadership to be taken over and its accepted work to end.</summary>
    private static readonly TimeSpan s_drainLimit = TimeSpan.FromSeconds(5);

    /// <summary>A state is stored anew after this part of the kept log: a restart replays about that much, and what is cut was stored long before.</summary>
    private const int FlushesPerKeptLog = 4;

    /// <summary>A node that starts says that it has no majority after so many election timeouts.</summary>
    private const int ElectionsWithoutMajority = 10;

    private readonly ILogger _log;
    private readonly ThrottledLoggers _loggers;
    private readonly TlsSource _tls;
    private readonly CertificateWatch _certificates;
    private readonly LeadershipLog _leadership;
    private readonly ConnectionMemory _connectionMemory = new(IdleMemory.GiveBack);
    private readonly NodeOpenings _openings = new(TimeProvider.System);
    private readonly CalmHeap _calmHeap = new(static () => GC.GetTotalAllocatedBytes(), IdleMemory.CompactionBytes, IdleMemory.GiveBackAll, IdleMemory.Compact);
    private readonly NodeStorage _storage;
    private readonly StateKeeper _keeper;
    private readonly StateThread _stateThread;
    private readonly VotingRights _rights;
    private readonly ClusterView _view;
    private readonly PeerLinks _links;
    private readonly LoopSet _loops;
    private readonly CancellationTokenSource _stopping = new();
    private readonly TaskCompletionSource<Exception> _fatal = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly HealthServiceImpl _health = new();
    private readonly IFatalErrors _fatalErrors;
    private Forwarder? _forwarder;
    private WebApplication? _app;
    private Timer? _ticker;
    private Timer? _slowTicker;
    private int _stopped;
    private int _dead;

    private KahunaNode(NodeOptions options, KnownMembers members, NodeStorage storage, ThrottledLoggers loggers, IFatalErrors fatalErrors)
    {
        Options = options;
        _fatalErrors = fatalErrors;
        _storage = storage;
        _loggers = loggers;
        _log = loggers.CreateLogger("Kahuna.Node");
        NodeId[] voters = [.. options.Peers.Select(peer => peer.Id)];
        _view = new ClusterView(new ClusterIdentity(
            options.ClusterId,
            options.NodeId,
            ProductVersion.Text,
            options.Partitions,
            [.. options.Peers.Select(peer => (peer.Id, peer.Address))]), hasEphemeral: true);
        _view.Failed += (group, error) => _log.PartitionStopped(group.Title, error);
        _view.StorageDead += OnStorageDead;
        _certificates = new CertificateWatch(NodeCertificates.Files(options), () => NodeCertificates.Load(options, TimeProvider.System, _log.WaitsForCertificates), TimeProvider.System, _log);
        _tls = _certificates.Tls;
        PeerRelay relay = new();
        _links = new PeerLinks(NodeLinks.OptionsOf(options, _tls, members, fatalErrors), relay, loggers);
        ulong start = (ulong)Stopwatch.GetTimestamp() ^ ((ulong)options.NodeId.Value << 48);
        HashSecret = HashSecret.From(RandomNumberGenerator.GetBytes(HashSecret.Bytes));
        StateLimits limits = new() { HashSecret = HashSecret };
        StateKeeperOptions keeping = new()
        {
            Self = options.NodeId,
            StateLimits = limits,
            BytesPerSecond = options.BackgroundBytesPerSecond,
            UrgentLogBytes = options.LogKeepBytes,
            FirstTransfer = start,
        };
        _keeper = new StateKeeper(keeping, new KeeperPorts(storage.States, storage.Log, _links, TimeProvider.System, _log.Progress) { Rest = IdleMemory.GiveBack }, OnStorageDead);
        _stateThread = new StateThread(_keeper, fatalErrors);
        storage.Trace?.Started(voters.Length, options.Partitions, members.OwnDirectoryId);
        storage.Trace?.Failed += OnStorageDead;
        ILogStore log = storage.Trace?.Around(storage.Log) ?? storage.Log;
        IPeerTransport links = storage.Trace?.Around(_links) ?? _links;
        LoopOptions loopOptions = new()
        {
            Self = options.NodeId,
            Voters = voters,
            PreferredLeader = PreferredLeaders.For(options.LeaderPlacement == LeaderPlacement.Together, voters),
            Loops = Math.Clamp(Math.Min(Environment.ProcessorCount / 2, options.Partitions), 1, 32),
            StateLimits = limits,
            HasEphemeral = true,
            Seed = start,
            FlushLogBytes = options.LogKeepBytes / FlushesPerKeptLog,
            PledgeTicks = LoopOptions.TicksOf(options.EphemeralPatience),
            Voting = members.Voting switch
            {
                VotingState.Yes => VotingRight.Full,
                VotingState.Rejoining => VotingRight.Rejoining,
                _ => VotingRight.Unproven,
            },
        };
        _loops = new LoopSet(loopOptions, new LoopPorts(options.Partitions, TimeProvider.System, new InlineTurnScheduler(), log, links, _view)
        {
            States = storage.States,
            Memory = new EphemeralMemory(options.EphemeralBytesMax, options.EphemeralPolicy == EphemeralPolicy.Evict),
            PersistentMemory = new PersistentMemory(options.PersistentBytesMax),
            Keeper = _keeper,
            FatalErrors = fatalErrors,
            Trace = storage.Trace,
            Report = _log.Progress,
        });
        _keeper.Attach(_loops, _stateThread.Wake);
        relay.Receiver = _loops;
        _rights = new VotingRights(members, _loops, _view);
        _rights.Begin();
        members.Refused += sentence => OnStorageDead(new DataDirectoryException(sentence));
        _view.ReadCommitIndexFrom(slot => _loops.Partition(slot).CommitIndex.Value);
        _leadership = new LeadershipLog(_view, () => voters.Count(voter => voter == options.NodeId || _links.IsUp(voter)), _log, loopOptions.ElectionTicks * ElectionsWithoutMajority);
        TickMs = loopOptions.TickMs;
    }

    public NodeOptions Options { get; }

    public ClusterView View => _view;

    /// <summary>The secret of this node's tables. It is not to leave the process.</summary>
    internal HashSecret HashSecret { get; }

    /// <summary>Completes, with the reason, when the node cannot go on (its log is dead). The owner then stops it.</summary>
    public Task<Exception> Fatal => _fatal.Task;

    private int TickMs { get; }

    /// <summary>Starts a node. When it returns, endpoints answer; see <see cref="WaitReadyAsync"/> for when it can serve. Throws with one clear sentence when it cannot start.</summary>
    /// <param name="options">The node's options.</param>
    /// <param name="fatalErrors">What ends the process after an unexpected exception; null: <see cref="ProcessEnd"/>.</param>
    /// <param name="cancellationToken">Ends the start.</param>
    public static async Task<KahunaNode> StartAsync(NodeOptions options, IFatalErrors? fatalErrors = null, CancellationToken cancellationToken = default)
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
        NodeStorage storage = await NodeStorage.OpenAsync(options, identity, fatalErrors, log.Attention).ConfigureAwait(false);
        KahunaNode node;
        try
        {
            node = new(options, KnownMembers.Open(options, identity), storage, loggers, fatalErrors);
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

    /// <summary>Stops gracefully: tells clients, hands leadership over, finishes what was accepted, closes the log. A second call does nothing.</summary>
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
            using CancellationTokenSource limit = new(s_drainLimit);
            try
            {
                await _app.StopAsync(limit.Token).ConfigureAwait(false);
            }
            catch (OperationCanceledException)
            {
                // Connections that did not end in time are cut with the process's sockets.
            }

            await _app.DisposeAsync().ConfigureAwait(false);
        }

        if (_ticker is not null)
        {
            await _ticker.DisposeAsync().ConfigureAwait(false);
        }

        if (_slowTicker is not null)
        {
            await _slowTicker.DisposeAsync().ConfigureAwait(false);
        }

        _leadership.Dispose();

        if (_forwarder is not null)
        {
            await _forwarder.DisposeAsync().ConfigureAwait(false);
        }

        await _links.DisposeAsync().ConfigureAwait(false);
        _stateThread.Dispose();
        await _storage.DisposeAsync().ConfigureAwait(false);
        _stopping.Dispose();
        _loggers.Dispose();
    }

    /// <summary>Ends the process, or whatever stands for it, with the reason of <see cref="Fatal"/>.</summary>
    public void EndProcess(Exception reason) => _fatalErrors.Raise($"node {Options.NodeId}, which cannot go on", reason);

    private async Task ServeAsync(CancellationToken cancellationToken)
    {
        NodePass pass = NodeLinks.PassOf(Options);
        _forwarder = new Forwarder(Options.Peers.Select(peer => peer.Address), TrustedCa(Options), pass, _loggers);
        ReplyRoom room = new();
        RequestDoor door = new(new Router(_loops, _view), Options.ValueBytesMax) { Room = room };
        // The options of the node are all there is: no appsettings.json, no ASPNETCORE_ variables, and above all nobody who watches the
        // files below the current directory, where each write to a log would wake the watcher.
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(new WebApplicationOptions { ContentRootPath = AppContext.BaseDirectory });
        builder.Services.AddSingleton<ILoggerFactory>(_loggers);
        builder.Services.AddLogging();
        builder.WebHost.UseKestrelCore().ConfigureKestrel(ConfigureKestrel);
        builder.Services.AddKahunaPeers(_links, OnStorageDead);
        builder.Services.AddSingleton<IHostLifetime, OwnerLifetime>();
        CallLimits limits = new() { MessageBytesMax = CallLimits.MessageBytesDefault + Options.ValueBytesMax, Room = room, Stop = _stopping.Token };
        builder.Services.AddKahunaGrpc(limits);
        AddServices(builder.Services, door, pass);
        _app = builder.Build();
        HealthEndpoints.Map(_app, () => (_view.IsReady(out string reason), reason));
        StatusEndpoint.Map(_app, _view, slot => _loops.Partition(slot).Figures, _storage, () => _loops.MemoryBytes);
        TellHealth();
        _app.MapKahunaGrpc(limits, NodeServices.Described(), _loggers.CreateLogger("Kahuna.Grpc"));
        _app.MapNodeServices();
        _loggers.IsStarting = true;
        await _app.StartAsync(cancellationToken).ConfigureAwait(false);
        _loggers.IsStarting = false;
        _stateThread.Start();
        _links.Start();
        _view.Watch(TellHealth);
        _ticker = new Timer(_ => Tick(), null, TickMs, TickMs);
        _slowTicker = new Timer(_ => SlowTick(), null, TimeSpan.Zero, CertificateWatch.Interval);
        _ = GcPauses.Shared;
        StartReport.Tell(Options, _log);
    }

    private void AddServices(IServiceCollection services, RequestDoor door, NodePass pass)
    {
        UnaryCalls calls = new(door, _forwarder!);
        door.Forward = new StreamForwarding(calls).Begin;
        services.AddSingleton(new KeyValuesService(calls));
        services.AddSingleton(new SequencesService(calls, Options.Partitions));
        services.AddSingleton(new LocksService(new LockCalls(calls.ExecuteAsync, TimeProvider.System), Options.Partitions, _stopping.Token));
        services.AddSingleton(new ClusterService(_view, door, pass, _stopping.Token));
        services.AddSingleton(_health);
    }

    private static string? TrustedCa(NodeOptions options) =>
        options.TrustedCaPath ?? (options.CertificatePath is null ? Path.Combine(DevelopmentCertificates.Directory(), DevelopmentCertificates.CaFile) : null);

    private void TellHealth() => NodeServices.TellHealth(_health, _view.IsReady(out _));

    private void OnStorageDead(Exception error)
    {
        // The line comes before the owner can end the process, and once.
        if (Interlocked.Exchange(ref _dead, 1) == 0)
        {
            _log.NodeDead(error.Message);
            _fatal.TrySetResult(error);
        }
    }

    private void Tick()
    {
        try
        {
            TryRejoin();
            foreach (PartitionLoop loop in _loops.Loops)
            {
                loop.PostTick();
            }

            _leadership.Look();
        }
        catch (Exception error)
        {
            _fatalErrors.Raise("a tick", error);
        }
    }

    private void TryRejoin()
    {
        try
        {
            if (_rights.TryRejoin())
            {
                _log.Restored();
            }
        }
        catch (IOException error)
        {
            _log.RestoredNotRecorded(error.Message);
        }
    }

    private void SlowTick()
    {
        lock (_certificates)
        {
            _certificates.Look();
            _connectionMemory.Look();
            _storage.Log.LetGo();
            _calmHeap.Look();
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
        while (Stopwatch.GetElapsedTime(began) < s_drainLimit && !_loops.IsDrained)
        {
            await Task.Delay(TickMs).ConfigureAwait(false);
        }
    }

    private void ConfigureKestrel(KestrelServerOptions kestrel)
    {
        kestrel.ConfigureKahunaLimits();
        foreach (Uri address in Options.Listen)
        {
            foreach (IPEndPoint endPoint in ListenEndPoints.Of(address))
            {
                kestrel.Listen(endPoint, listen =>
                {
                    listen.Use(_connectionMemory.Counting);
                    listen.Use(_openings.Counting);
                    listen.UseKahunaTls(_tls);
                });
            }
        }
    }
}
