using Kahuna.Client;
using Kahuna.Client.Connection;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Locks;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Nodes;
using Microsoft.Extensions.Logging.Abstractions;

namespace Kahuna.Tests.Simulation;

/// <summary>
/// A simulated cluster without faults of its own and with one client, which a test leads through what it wants to see.
/// All rules hold meanwhile. Owned by one test, on one thread.
/// </summary>
internal sealed class ScriptedCluster
{
    private const long StepNs = 10_000_000;

    private readonly SimCluster _cluster;
    private readonly SimContext _context;
    private readonly KahunaClient _client;

    /// <param name="nodes">Number of nodes.</param>
    /// <param name="ephemeralBytesMax">Memory for ephemeral keys on each node.</param>
    /// <param name="evicts">Keys are evicted at that size.</param>
    /// <param name="entriesInFlight">Ephemeral entries that may wait for a majority.</param>
    /// <param name="groups">Number of partitions.</param>
    /// <param name="limits">Limits of the states.</param>
    /// <param name="patienceMs">How long ephemeral data is kept for nodes that are out of reach; the default of the
    /// server. <see cref="int.MaxValue"/>: for ever.</param>
    public ScriptedCluster(
        int nodes,
        long ephemeralBytesMax = long.MaxValue,
        bool evicts = false,
        int entriesInFlight = 2,
        int groups = 1,
        StateLimits? limits = null,
        int patienceMs = 600_000)
    {
        SimConfig config = SimConfig.Draw(seed: 1, seconds: 1) with
        {
            EphemeralBytesMax = ephemeralBytesMax,
            Evicts = evicts,
            EphemeralReserve = null,
            EphemeralEntriesInFlight = entriesInFlight,
            SessionLimits = false,
            SessionsMax = int.MaxValue,
            StateLimits = limits ?? new StateLimits { HistoryBytes = 1000 },
            Nodes = nodes,
            Groups = groups,
            Loops = 1,
            Clients = 0,
            Classes = new HashSet<FaultClass>(),
            Loss = 0,
            Duplication = 0,
            Reordering = 0,
            DelayNs = 200_000,
            SyncNs = 500_000,
            TurnNs = 20_000,
            TickMs = 50,
            ElectionTicks = 16,
            HeartbeatTicks = 2,
            UncommittedBytesMax = 1 << 20,
            SegmentBytes = 4096,
            KeptSegments = 1,
            FlushLogBytes = 1,
            BackgroundBytesPerSecond = 100_000_000,
            HasEphemeral = true,
            Pledges = (10_000, patienceMs),
        };
        _cluster = new SimCluster(config, [], trace: null);
        _context = new SimContext(_cluster.Scheduler.After);
        SimClock clock = new(_cluster.Scheduler, 7);
        KahunaClientOptions options = new()
        {
            RequestTimeout = TimeSpan.FromSeconds(5),
            ConnectTimeout = TimeSpan.FromSeconds(1),
            TimeProvider = clock,
        };
        for (int i = 1; i <= nodes; i++)
        {
            options.Endpoints.Add(new Uri($"https://n{i}:1"));
        }

        _client = new KahunaClient(
            options,
            new ConnectionPorts(_cluster.Clients.Channel(1), clock, _context, 1)
            {
                NewSessionId = _cluster.Clients.NewSessionId,
            },
            NullLoggerFactory.Instance);
        _cluster.Faults.Begin();
        Settle();
    }

    public IReadOnlyList<SimNode> Nodes => _cluster.Nodes;

    /// <summary>The node that leads the persistent or the ephemeral keys.</summary>
    public SimNode Leader(Durability durability) =>
        Nodes.Single(node =>
            node is { IsUp: true, IsPaused: false }
                && node.Loops!.Group(Slot(durability)) is { IsLeader: true, Status.Serving: true });

    /// <summary>Number of the group with the keys of the durability, within a node.</summary>
    public int Slot(Durability durability) => _cluster.Config.Layout.IndexOf(0, durability == Durability.Ephemeral);

    /// <summary>Batches that the logs of all nodes have brought to stable storage.</summary>
    public long LogBatches => _cluster.Log.Kinds[(int)SimEvent.Persisted];

    /// <summary>Epoch that is open for the ephemeral keys.</summary>
    public ulong Epoch => _cluster.Rules.Ephemeral(0).Newest;

    /// <summary>Virtual time.</summary>
    public double Seconds => _cluster.Scheduler.NowNs / 1e9;

    /// <summary>Runs for a while.</summary>
    public void Run(double seconds) => _cluster.RunUntil(_cluster.Scheduler.NowNs + (long)(seconds * 1e9));

    /// <summary>
    /// The rule of availability looks; true when all is whole, every group is served, and nothing has happened since
    /// its last look.
    /// </summary>
    public bool LooksQuiet()
    {
        _cluster.Availability.Look(_cluster.Scheduler.NowNs, haveClientsCuts: false);
        return _cluster.Availability.QuietSinceNs != _cluster.Scheduler.NowNs;
    }

    /// <summary>Runs until every node serves, or three minutes.</summary>
    public void Settle()
    {
        for (int i = 0; i < 18_000 && !Nodes.All(IsReady); i++)
        {
            _cluster.RunUntil(_cluster.Scheduler.NowNs + StepNs);
        }

        Assert.All(Nodes, node => Assert.True(IsReady(node)));
    }

    /// <summary>Writes; true when that was acknowledged.</summary>
    public bool Set(string key, string value, Durability durability) => TrySet(key, value, durability) is null;

    /// <summary>Writes; null when that was acknowledged, else the error.</summary>
    public KahunaErrorCode? TrySet(string key, string value, Durability durability) =>
        Call(() => TrySetAsync(key, value, durability));

    /// <summary>Writes without waiting for the end; true of the task says that it was acknowledged.</summary>
    public Task<bool> BeginSet(string key, string value, Durability durability)
    {
        TaskCompletionSource<bool> ended = new();
        _context.Post(async _ => ended.SetResult((await TrySetAsync(key, value, durability)) is null), null);
        return ended.Task;
    }

    /// <summary>Keys of the durability as its leader has them.</summary>
    public long Keys(Durability durability) => Leader(durability).Loops!.Group(Slot(durability)).State.Counts.Keys;

    /// <summary>Deletes; true when there was something.</summary>
    public bool Delete(string key, Durability durability) =>
        Call(async () =>
            (await _client.KeyValues.DeleteAsync(key, new DeleteOptions { Durability = durability })).Deleted);

    /// <summary>Reads; null when there is nothing.</summary>
    public string? Get(string key, Durability durability) => Call(async () =>
    {
        var read = await _client.KeyValues.GetAsync(key, new ReadOptions { Durability = durability });
        return read.Found ? read.Value.AsString() : null;
    });

    /// <summary>Asks for a lock, which is not renewed unless that is asked for, and does not wait for it.</summary>
    public Task<LockHandle> BeginAcquire(
        string name, Durability durability, TimeSpan lease, TimeSpan wait, bool renews = false)
    {
        TaskCompletionSource<LockHandle> granted = new();
        _context.Post(
            async _ =>
                granted.SetResult(await _client.Locks.AcquireAsync(
                    name, lease, wait, new LockOptions { Durability = durability, AutoRenew = renews })),
            null);
        return granted.Task;
    }

    /// <summary>Runs until the task is over, for at most ten seconds; its result.</summary>
    public T Await<T>(Task<T> task)
    {
        for (int i = 0; i < 1_000 && !task.IsCompleted; i++)
        {
            _cluster.RunUntil(_cluster.Scheduler.NowNs + StepNs);
        }

        Assert.True(task.IsCompletedSuccessfully);
        return task.GetAwaiter().GetResult();
    }

    /// <summary>Gives a lock back; true when it was still held.</summary>
    public bool Release(LockHandle handle) => Call(async () => await handle.ReleaseAsync());

    /// <summary>Who has a lock; null when nobody does.</summary>
    public LockDescription? Look(string name, Durability durability) =>
        Call(async () => await _client.Locks.GetAsync(name, durability));

    /// <summary>Virtual ms since the run began.</summary>
    public long NowMs => _cluster.Scheduler.NowNs / 1_000_000;

    /// <summary>Cuts the client off from a node, or heals that.</summary>
    public void CutClient(SimNode node, bool isCut) => _cluster.Clients.Cut(1, node.Id, isCut);

    /// <summary>Cuts a node off from the other nodes, or heals that; clients reach it all the same.</summary>
    public void CutPeers(SimNode node, bool isCut)
    {
        foreach (SimNode other in Nodes.Where(other => other != node))
        {
            _cluster.Peers.Cut(node.Id, other.Id, isCut);
            _cluster.Peers.Cut(other.Id, node.Id, isCut);
        }
    }

    /// <summary>Everything between a node and the others takes longer by so much each way; 0 heals that.</summary>
    public void ClogPeers(SimNode node, long extraMs)
    {
        foreach (SimNode other in Nodes.Where(other => other != node))
        {
            _cluster.Peers.Clog(node.Id, other.Id, extraMs * 1_000_000);
            _cluster.Peers.Clog(other.Id, node.Id, extraMs * 1_000_000);
        }
    }

    /// <summary>A node has said this lately.</summary>
    public bool WasSaid(string words) =>
        _cluster.Log.Story().Any(line => line.Contains(words, StringComparison.Ordinal));

    /// <summary>Cuts every node off from every other, or heals that.</summary>
    public void CutAll(bool isCut)
    {
        foreach (SimNode from in Nodes)
        {
            foreach (SimNode to in Nodes.Where(to => to != from))
            {
                _cluster.Peers.Cut(from.Id, to.Id, isCut);
            }
        }
    }

    /// <summary>Starts nodes that do not run.</summary>
    public void Start(params IEnumerable<SimNode> nodes)
    {
        foreach (SimNode node in nodes)
        {
            Assert.True(node.Start(out string? refusal), refusal);
        }
    }

    private async Task<KahunaErrorCode?> TrySetAsync(string key, string value, Durability durability)
    {
        try
        {
            await _client.KeyValues.SetAsync(key, value, new SetOptions { Durability = durability });
            return null;
        }
        catch (KahunaException error)
        {
            return error.Code;
        }
    }

    private static bool IsReady(SimNode node) =>
        node is { IsUp: true, IsPaused: false, IsRejoining: false, View: { } view } && view.IsReady(out _);

    private T Call<T>(Func<Task<T>> call)
    {
        Task<T>? running = null;
        _context.Post(_ => running = call(), null);
        while (running is not { IsCompleted: true })
        {
            _cluster.RunUntil(_cluster.Scheduler.NowNs + StepNs);
        }

        return running.GetAwaiter().GetResult();
    }
}
