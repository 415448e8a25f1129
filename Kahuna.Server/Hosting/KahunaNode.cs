using System.Diagnostics;
using System.Net;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Grpc;
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
using Kahuna.Server.Transport;
using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace Kahuna.Server.Hosting;

/// <summary>
/// One node: opens the data, starts the loops, the peer links and the endpoints, and stops them in the right order.
/// Owned by the program or by an embedded cluster; its methods may be called from any thread.
/// </summary>
internal sealed partial class KahunaNode : IAsyncDisposable
{
    /// <summary>How long a stopping node waits for its leadership to be taken over and its accepted work to end.</summary>
    private static readonly TimeSpan s_drainLimit = TimeSpan.FromSeconds(5);

    /// <summary>A state is stored anew after this part of the kept log: a restart replays about that much, and what is cut was stored long before.</summary>
    private const int FlushesPerKeptLog = 4;

    private readonly ILogger _log;
    private readonly ILoggerFactory _loggers;
    private readonly NodeTls _tls;
    private readonly NodeStorage _storage;
    private readonly StateKeeper _keeper;
    private readonly StateThread _stateThread;
    private readonly VotingRights _rights;
    private readonly ClusterView _view;
    private readonly PeerLinks _links;
    private readonly LoopSet _loops;
    private readonly CancellationTokenSource _stopping = new();
    private readonly TaskCompletionSource<Exception> _fatal = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly HealthStatusBoard _health = new();
    private readonly EphemeralMemory _memory;
    private Forwarder? _forwarder;
    private WebApplication? _app;
    private Timer? _ticker;
    private int _stopped;
    private int _dead;

    private KahunaNode(NodeOptions options, KnownMembers members, NodeStorage storage, ILoggerFactory loggers)
    {
        Options = options;
        _storage = storage;
        _loggers = loggers;
        _log = loggers.CreateLogger("Kahuna.Node");
        _memory = new EphemeralMemory(options.EphemeralBytesMax, options.EphemeralPolicy == EphemeralPolicy.Evict);
        NodeId[] voters = [.. options.Peers.Select(peer => peer.Id)];
        _view = new ClusterView(new ClusterIdentity(
            options.ClusterId,
            options.NodeId,
            ProductVersion.Text,
            options.Partitions,
            [.. options.Peers.Select(peer => (peer.Id, peer.Address))]), hasEphemeral: true);
        _view.Failed += (group, error) => LogPartitionFailed(_log, group.Title, error);
        _view.StorageDead += OnStorageDead;
        _tls = NodeCertificates.Load(options, TimeProvider.System);
        PeerRelay relay = new();
        _links = new PeerLinks(LinkOptions(options, _tls, members), relay, loggers);
        ulong start = (ulong)Stopwatch.GetTimestamp() ^ ((ulong)options.NodeId.Value << 48);
        StateKeeperOptions keeping = new()
        {
            Self = options.NodeId,
            BytesPerSecond = options.BackgroundBytesPerSecond,
            UrgentLogBytes = options.LogKeepBytes,
            FirstTransfer = start,
        };
        _keeper = new StateKeeper(keeping, new KeeperPorts(storage.States, storage.Log, _links, TimeProvider.System, line => LogProgress(_log, line)) { Rest = IdleMemory.GiveBack }, OnStorageDead);
        _stateThread = new StateThread(_keeper);
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
            HasEphemeral = true,
            Seed = start,
            FlushLogBytes = options.LogKeepBytes / FlushesPerKeptLog,
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
            Memory = _memory,
            Keeper = _keeper,
            Trace = storage.Trace,
            Report = line => LogProgress(_log, line),
        });
        _keeper.Attach(_loops, _stateThread.Wake);
        relay.Receiver = _loops;
        _rights = new VotingRights(members, _loops, _view);
        _rights.Begin();
        members.Refused += sentence => OnStorageDead(new DataDirectoryException(sentence));
        _view.ReadCommitIndexFrom(slot => _loops.Partition(slot).CommitIndex.Value);
        TickMs = loopOptions.TickMs;
    }

    public NodeOptions Options { get; }

    public ClusterView View => _view;

    /// <summary>Completes, with the reason, when the node cannot go on (its log is dead). The owner then stops it.</summary>
    public Task<Exception> Fatal => _fatal.Task;

    private int TickMs { get; }

    /// <summary>Starts a node. When it returns, endpoints answer; see <see cref="WaitReadyAsync"/> for when it can serve. Throws with one clear sentence when it cannot start.</summary>
    public static async Task<KahunaNode> StartAsync(NodeOptions options, CancellationToken cancellationToken = default)
    {
        ILoggerFactory loggers = NodeLogging.Create(options.LogLevel);
        ILogger log = loggers.CreateLogger("Kahuna.Node");
        DataDirectoryIdentity identity = DataDirectoryIdentity.Open(options, line => LogStorage(log, line));
        options = options with { Partitions = identity.Partitions };
        NodeStorage storage = await NodeStorage.OpenAsync(options, identity.StateStore!.Value, line => LogStorage(log, line)).ConfigureAwait(false);
        KahunaNode node;
        try
        {
            node = new(options, KnownMembers.Open(options, identity), storage, loggers);
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

    private async Task ServeAsync(CancellationToken cancellationToken)
    {
        _forwarder = new Forwarder(Options.Peers.Select(peer => peer.Address), TrustedCa(Options), _loggers);
        RequestDoor door = new(new Router(_loops, _view), Options.ValueBytesMax);
        // The options of the node are all there is: no appsettings.json, no ASPNETCORE_ variables, and above all nobody who watches the
        // files below the current directory, where each write to a log would wake the watcher.
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(new WebApplicationOptions { ContentRootPath = AppContext.BaseDirectory });
        builder.Services.AddRoutingCore();
        builder.Services.AddSingleton(_loggers);
        builder.WebHost.UseKestrelCore().ConfigureKestrel(ConfigureKestrel);
        builder.Services.AddKahunaPeers(_links);
        builder.Services.AddSingleton<IHostLifetime, OwnerLifetime>();
        _app = builder.Build();
        HealthEndpoints.Map(_app, () => (_view.IsReady(out string reason), reason));
        StatusEndpoint.Map(_app, _view, slot => _loops.Partition(slot).Figures, _storage, () => _memory.Bytes);
        GrpcServer grpc = new(
            new GrpcServerOptions
            {
                MaxReceiveMessageBytes = (4 << 20) + Options.ValueBytesMax,
                StopToken = _stopping.Token,
            },
            _loggers.CreateLogger("Kahuna.Grpc"));
        UnaryCalls calls = new(door, _forwarder);
        LocksService locks = new(new LockCalls(calls.ExecuteAsync, TimeProvider.System), Options.Partitions, _stopping.Token);
        NodeServices.Bind(grpc, new KeyValuesService(calls), new SequencesService(calls, Options.Partitions), locks, new ClusterService(_view, door, _stopping.Token));
        HealthHandlers.AddTo(grpc, _health);
        ReflectionHandlers.AddTo(grpc);
        TellHealth();
        _app.MapGrpc(grpc);
        await _app.StartAsync(cancellationToken).ConfigureAwait(false);
        _stateThread.Start();
        _links.Start();
        _view.Watch(TellHealth);
        _ticker = new Timer(_ => Tick(), null, TickMs, TickMs);
        _ = GcPauses.Shared;
        LogStarted(_log, Options.NodeId.Value, Options.ClusterId, Options.Advertise, Options.DataDirectory, Options.Partitions);
    }

    private static string? TrustedCa(NodeOptions options) =>
        options.TrustedCaPath ?? (options.CertificatePath is null ? Path.Combine(DevelopmentCertificates.Directory(), DevelopmentCertificates.CaFile) : null);

    private static PeerLinksOptions LinkOptions(NodeOptions options, NodeTls tls, KnownMembers members) => new()
    {
        Self = options.NodeId,
        ClusterId = options.ClusterId,
        Partitions = options.Partitions,
        Secret = options.ClusterSecretFile is { } file ? ClusterSecret.Read(file) : ReadOnlyMemory<byte>.Empty,
        Peers = [.. options.Peers.Select(peer => new PeerAddress(peer.Id, peer.Address))],
        Certificate = tls.Certificate,
        Directory = members,
        TrustedRoots = tls.TrustedRoots,
    };

    private void TellHealth() => _health.Set(NodeServices.Names, _view.IsReady(out _));

    private void OnStorageDead(Exception error)
    {
        // The line comes before the owner can end the process, and once.
        if (Interlocked.Exchange(ref _dead, 1) == 0)
        {
            LogStorageFailed(_log, error.Message);
            _fatal.TrySetResult(error);
        }
    }

    private void Tick()
    {
        try
        {
            if (_rights.TryRejoin())
            {
                LogProgress(_log, "The node is restored and votes again.");
            }
        }
        catch (IOException error)
        {
            LogStorage(_log, $"That this node is restored could not be recorded, so it does not vote yet: {error.Message}");
        }

        foreach (PartitionLoop loop in _loops.Loops)
        {
            loop.PostTick();
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
        kestrel.AddServerHeader = false;
        foreach (Uri address in Options.Listen)
        {
            foreach (IPEndPoint endPoint in ListenEndPoints.Of(address))
            {
                kestrel.Listen(endPoint, listen => listen.UseKahunaTls(_tls.Certificate));
            }
        }
    }

    /// <summary>The node's owner decides when it stops; signals are the process's business.</summary>
    private sealed class OwnerLifetime : IHostLifetime
    {
        public Task WaitForStartAsync(CancellationToken cancellationToken) => Task.CompletedTask;

        public Task StopAsync(CancellationToken cancellationToken) => Task.CompletedTask;
    }

    /// <summary>Breaks the circle of construction: links need a receiver, loops need the links.</summary>
    private sealed class PeerRelay : IPeerReceiver
    {
        public IPeerReceiver? Receiver { get; set; }

        public void Receive(NodeId from, ReadOnlySpan<byte> payload) => Receiver?.Receive(from, payload);

        public void LinkChanged(NodeId peer, bool up) => Receiver?.LinkChanged(peer, up);
    }

    [LoggerMessage(1, LogLevel.Information, "Node {Node} of cluster {Cluster} serves {Address}; data in {Directory}; {Partitions} partition(s)")]
    private static partial void LogStarted(ILogger logger, ushort node, string cluster, Uri address, string directory, int partitions);

    [LoggerMessage(2, LogLevel.Warning, "{Line}")]
    private static partial void LogStorage(ILogger logger, string line);

    [LoggerMessage(5, LogLevel.Information, "{Line}")]
    private static partial void LogProgress(ILogger logger, string line);

    [LoggerMessage(3, LogLevel.Critical, "{Group} has stopped: a rule of the program is broken. It serves nothing any more; keep the data directory and report this.")]
    private static partial void LogPartitionFailed(ILogger logger, string group, Exception error);

    [LoggerMessage(4, LogLevel.Critical, "{Reason}")]
    private static partial void LogStorageFailed(ILogger logger, string reason);
}
