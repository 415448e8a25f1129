using System.Diagnostics;
using System.Net;
using Kahuna.Server.Api;
using Kahuna.Server.Api.Grpc;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting.Certificates;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Observability;
using Kahuna.Server.Partitions;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;
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

    private readonly ILogger _log;
    private readonly ILoggerFactory _loggers;
    private readonly NodeTls _tls;
    private readonly ThreadedLog _store;
    private readonly ClusterView _view;
    private readonly PeerLinks _links;
    private readonly LoopSet _loops;
    private readonly CancellationTokenSource _stopping = new();
    private readonly TaskCompletionSource<Exception> _fatal = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly HealthStatusBoard _health = new();
    private Forwarder? _forwarder;
    private WebApplication? _app;
    private Timer? _ticker;
    private int _stopped;

    private KahunaNode(NodeOptions options, ILoggerFactory loggers)
    {
        Options = options;
        _loggers = loggers;
        _log = loggers.CreateLogger("Kahuna.Node");
        _store = ThreadedLog.Open(options.DataDirectory, new SegmentedLogOptions { LogLimitBytes = options.LogLimitBytes }, line => LogStorage(_log, line));
        NodeId[] voters = [.. options.Peers.Select(peer => peer.Id)];
        _view = new ClusterView(new ClusterIdentity(
            options.ClusterId,
            options.NodeId,
            ProductVersion.Text,
            options.Partitions,
            [.. options.Peers.Select(peer => (peer.Id, peer.Address))]));
        _view.Failed += (partition, error) => LogPartitionFailed(_log, partition, error);
        _view.LogDead += OnLogDead;
        _tls = NodeCertificates.Load(options, TimeProvider.System);
        PeerRelay relay = new();
        _links = new PeerLinks(LinkOptions(options, _tls), relay, loggers);
        LoopOptions loopOptions = new()
        {
            Self = options.NodeId,
            Voters = voters,
            PreferredLeader = PreferredLeaders.For(options.LeaderPlacement == LeaderPlacement.Together, voters),
            Loops = Math.Clamp(Math.Min(Environment.ProcessorCount / 2, options.Partitions), 1, 32),
            Seed = (ulong)Stopwatch.GetTimestamp() ^ ((ulong)options.NodeId.Value << 48),
        };
        _loops = new LoopSet(loopOptions, new LoopPorts(options.Partitions, TimeProvider.System, new InlineTurnScheduler(), _store, _links, _view));
        relay.Receiver = _loops;
        _view.ReadCommitIndexFrom(partition => _loops.Partition(partition).CommitIndex.Value);
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
        options = options with { Partitions = DataDirectoryIdentity.Open(options).Partitions };
        ILoggerFactory loggers = NodeLogging.Create(options.LogLevel);
        KahunaNode node = new(options, loggers);
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
        foreach (PartitionLoop loop in _loops.Loops)
        {
            loop.PostClose();
        }

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
        await _store.DisposeAsync().ConfigureAwait(false);
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
        StatusEndpoint.Map(_app, _view);
        GrpcServer grpc = new(
            new GrpcServerOptions
            {
                MaxReceiveMessageBytes = (4 << 20) + Options.ValueBytesMax,
                StopToken = _stopping.Token,
            },
            _loggers.CreateLogger("Kahuna.Grpc"));
        NodeServices.Bind(grpc, new KeyValuesService(new UnaryCalls(door, _forwarder)), new ClusterService(_view, door, _stopping.Token));
        HealthHandlers.AddTo(grpc, _health);
        ReflectionHandlers.AddTo(grpc);
        TellHealth();
        _app.MapGrpc(grpc);
        await _app.StartAsync(cancellationToken).ConfigureAwait(false);
        _links.Start();
        _view.Watch(TellHealth);
        _ticker = new Timer(_ => Tick(), null, TickMs, TickMs);
        _ = GcPauses.Shared;
        LogStarted(_log, Options.NodeId.Value, Options.ClusterId, Options.Advertise, Options.DataDirectory, Options.Partitions);
    }

    private static string? TrustedCa(NodeOptions options) =>
        options.TrustedCaPath ?? (options.CertificatePath is null ? Path.Combine(DevelopmentCertificates.Directory(), DevelopmentCertificates.CaFile) : null);

    private static PeerLinksOptions LinkOptions(NodeOptions options, NodeTls tls) => new()
    {
        Self = options.NodeId,
        ClusterId = options.ClusterId,
        Partitions = options.Partitions,
        Secret = options.ClusterSecretFile is { } file ? ClusterSecret.Read(file) : ReadOnlyMemory<byte>.Empty,
        Peers = [.. options.Peers.Select(peer => new PeerAddress(peer.Id, peer.Address))],
        Certificate = tls.Certificate,
        TrustedRoots = tls.TrustedRoots,
    };

    private void TellHealth() => _health.Set(NodeServices.Names, _view.IsReady(out _));

    private void OnLogDead(Exception error)
    {
        if (_fatal.TrySetResult(error))
        {
            LogStorageFailed(_log, error.Message);
        }
    }

    private void Tick()
    {
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

        foreach (PartitionLoop loop in _loops.Loops)
        {
            loop.PostDrain();
        }

        long began = Stopwatch.GetTimestamp();
        while (Stopwatch.GetElapsedTime(began) < s_drainLimit && !Drained())
        {
            await Task.Delay(TickMs).ConfigureAwait(false);
        }
    }

    private bool Drained()
    {
        foreach (PartitionLoop loop in _loops.Loops)
        {
            if (!loop.IsDrained)
            {
                return false;
            }
        }

        return true;
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

    [LoggerMessage(3, LogLevel.Critical, "Partition {Partition} has stopped: a rule of the program is broken. It serves nothing any more; keep the data directory and report this.")]
    private static partial void LogPartitionFailed(ILogger logger, int partition, Exception error);

    [LoggerMessage(4, LogLevel.Critical, "{Reason}")]
    private static partial void LogStorageFailed(ILogger logger, string reason);
}
