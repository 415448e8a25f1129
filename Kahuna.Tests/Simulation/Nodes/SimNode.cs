using Kahuna.Server.Api;
using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage;
using Kahuna.Tests.Simulation.Engine;
using Kahuna.Tests.Simulation.Network;
using Kahuna.Tests.Simulation.Rules;
using Kahuna.Tests.Simulation.Workload;
using Kahuna.Tests.Storage;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// One node over all its lives: the shipped loops, log, state store and admission, put together as the host does it, on
/// a disk, a clock and links of the run. Everything that its code does runs through <see cref="Do"/>, which knows
/// whether that life lasts and whether it is paused.
/// </summary>
internal sealed class SimNode : ITurnScheduler, IPeerTransport
{
    public const string DataPath = "/data";

    private readonly SimCluster _cluster;
    private readonly SimConfig _config;
    private readonly SimRandom _random;
    private readonly HeldActions _held;
    private readonly HashSet<ServerSession> _sessions = [];
    private readonly Dictionary<int, int> _directories = [];
    private int _logOf;
    private RequestAdmission? _admission;
    private UnaryServer? _unary;
    private (int Life, bool Power) _dead;
    private int _sourcesTaken;

    public SimNode(SimCluster cluster, int id)
    {
        _cluster = cluster;
        _config = cluster.Config;
        _random = new SimRandom(_config.Seed).Fork(100 + (ulong)id);
        Witness = new LogWitness(_config.Layout);
        _sourcesTaken = _config.Nodes;
        _held = new HeldActions(this, _random, _config.TurnNs);
        Hung = new HungDisk(this);
        Id = id;
        Clock = new SimClock(cluster.Scheduler, _random.Between(0L, 1_000_000_000_000L))
        {
            Owner = () =>
            {
                int life = Life;
                return new SimClock.TimerOwner(() => life == Life, action => Do(life, action));
            },
        };
        Disk.Fault = Fault;
    }

    public int Id { get; }
    public SimScheduler Scheduler => _cluster.Scheduler;
    public ClusterRules Rules => _cluster.Rules;

    public SimClock Clock { get; }

    public ModelDisk Disk { get; private set; } = new();

    /// <summary>Counts up at each start and end.</summary>
    public int Life { get; private set; }

    /// <summary>Counts up when the disk is lost.</summary>
    public int Directory { get; private set; } = 1;

    public bool IsUp { get; private set; }
    public bool IsPaused { get; private set; }

    /// <summary>Its build supports one feature level more than the released one.</summary>
    public bool IsRaised
    {
        get;
        set
        {
            field = value;
            WasRaised |= value;
        }
    }

    /// <summary>It has had such a build.</summary>
    public bool WasRaised { get; private set; }

    /// <summary>The feature levels that its build supports.</summary>
    public FeatureRange Features => IsRaised ? FeatureLevels.SupportedInTest : FeatureLevels.Supported;

    /// <summary>Why the last start was refused.</summary>
    public Exception? StartError { get; private set; }

    /// <summary>The directory was lost, and the node does not vote yet.</summary>
    public bool IsRejoining { get; private set; }

    public LogWitness Witness { get; }
    public ChangeWatch Changes { get; } = new();
    public LoopSet? Loops { get; private set; }
    public CheckpointService? Keeper { get; private set; }
    public ClusterView? View { get; private set; }

    /// <summary>The changes that this life has applied.</summary>
    public ChangeLogs? ChangeLogs { get; private set; }

    /// <summary>Who serves the watches of this life.</summary>
    public WatchServing? Watches { get; private set; }
    public RequestAdmission? Admission => _admission;

    /// <summary>What this life knows of users; null: there are none.</summary>
    public SimAccess? Access { get; private set; }

    /// <summary>When it last heard something of a peer that was on its way for too long.</summary>
    public long HeardLateNs { get; private set; } = long.MinValue / 2;
    public HungDisk Hung { get; }

    /// <summary>Bytes of answers that wait, and how many streams they may be for.</summary>
    public (long Bytes, int Streams) Waiting => (_admission?.Room.Used ?? 0, _sessions.Count);

    /// <summary>Multiplies the time that a sync takes.</summary>
    public double SyncFactor { get; set; } = 1;

    /// <summary>Told when entries of a group, the last of this term, go to the node's log.</summary>
    public Action<GroupId, ulong>? Writes { get; set; }

    /// <summary>How the node ends when a state replaces what its log has; null: it does not.</summary>
    public ReplacedEnd? Replaced { get; set; }

    /// <summary>
    /// Decides whether a disk operation fails: 0 or an error number; may throw <see cref="SimCrashException"/>.
    /// </summary>
    public Func<DiskStep, string, int>? DiskFault { get; set; }

    public long SyncNs() => (_config.SyncNs / 4) + (long)(_random.Exponential(_config.SyncNs) * SyncFactor);

    // ---- Lives

    /// <summary>Starts the process. False when it refused, with one sentence in <paramref name="refusal"/>.</summary>
    public bool Start(out string? refusal)
    {
        refusal = null;
        StartError = null;
        Life++;
        IsUp = true;
        IsPaused = false;
        _held.Clear();
        try
        {
            Build();
        }
        catch (SimCrashException crash)
        {
            IsUp = false;
            Life++;
            EndDisk(crash.Power);
            refusal = crash.Message;
            return false;
        }
        catch (Exception error) when (
            error is IOException
                or LogDamagedException
                or LogFailedException
                or StorageException
                or StateWriteException)
        {
            IsUp = false;
            Life++;
            Disk.Kill();
            StartError = error;
            refusal = error.Message;
            Scheduler.Note(SimEvent.StartRefused, Id, words: refusal);
            return false;
        }

        Scheduler.Note(SimEvent.Start, Id, Life, Directory);
        After(Clock.ToRun(_config.TickMs * 1_000_000L), Tick);
        _cluster.Peers.Join(Id);
        Rules.Look(this);
        return true;
    }

    /// <summary>The process ends at once; with <paramref name="power"/> off, so does what was not synced.</summary>
    public void Crash(bool power)
    {
        if (!IsUp)
        {
            return;
        }

        Scheduler.Note(power ? SimEvent.Crash : SimEvent.Kill, Id);
        IsUp = false;
        IsPaused = false;
        Life++;
        Hung.Set(false);
        Loops = null;
        Keeper = null;
        View = null;
        ChangeLogs = null;
        Watches?.Die(silently: power);
        Watches = null;
        _admission = null;
        _unary?.Die(power);
        _unary = null;
        _held.Clear();
        foreach (ServerSession session in _sessions.ToArray())
        {
            session.Die(power ? null : "the node ended");
        }

        _sessions.Clear();
        EndDisk(power);
        Rules.Ended(this);
        _cluster.Peers.Leave(Id, silently: power);
        _cluster.Ended(this);
    }

    /// <summary>The node, which does not run, gets an empty disk, and rejoins at its next start.</summary>
    public void Wipe()
    {
        Scheduler.Note(SimEvent.Wipe, Id);
        Disk = new ModelDisk { Fault = Fault };
        Directory++;
        _directories.Clear();
        IsRejoining = _config.Nodes > 1;
        Witness.Forget();
        Rules.Wiped(this);
    }

    public void Pause()
    {
        Scheduler.Note(SimEvent.Pause, Id);
        IsPaused = true;
    }

    public void Resume()
    {
        if (IsPaused)
        {
            Scheduler.Note(SimEvent.Resume, Id);
            IsPaused = false;
            _held.Release(Life);
        }
    }

    /// <summary>A rule of the program was broken, as the shipped code itself says.</summary>
    public void Break(string words) => Rules.Break("shipped code says so", $"node {Id}: {words}");

    // ---- What runs

    /// <summary>
    /// Runs something of this life, now or after a pause; then it keeps its place among what comes from the same source
    /// only: 0 is the node itself.
    /// </summary>
    public void Do(int life, Action action, int source = 0)
    {
        if (life != Life || !IsUp)
        {
            return;
        }

        if (IsPaused || _held.IsReleasing)
        {
            _held.Add(life, source, action);
            return;
        }

        try
        {
            action();
        }
        catch (SimCrashException crash)
        {
            Crash(crash.Power);
            return;
        }

        Rules.Look(this);
    }

    /// <summary>Runs something of this life later.</summary>
    public void After(long delayNs, Action action)
    {
        int life = Life;
        Scheduler.After(delayNs, () => Do(life, action));
    }

    void ITurnScheduler.Schedule(ITurns loop, bool mayRunInline)
    {
        Scheduler.CheckThread("scheduled a loop");
        After((long)_random.Exponential(_config.TurnNs), () => Changes.Run(loop));
    }

    void ITurnScheduler.Later(Action action, int ms) => After(Clock.ToRun(ms * 1_000_000L), action);

    private void Tick()
    {
        After(Clock.ToRun(_config.TickMs * 1_000_000L), Tick);
        if (IsRejoining && CanRejoin())
        {
            IsRejoining = false;
            foreach (PartitionLoop loop in Loops!.Loops)
            {
                loop.PostAllowVoting();
            }
        }

        foreach (PartitionLoop loop in Loops!.Loops)
        {
            loop.PostTick();
        }
    }

    private bool CanRejoin()
    {
        foreach (PartitionLoop loop in Loops!.Loops)
        {
            if (loop.Owned.Any(static partition => !partition.CanRejoin))
            {
                return false;
            }
        }

        return true;
    }

    // ---- Links

    ByteBuffer IPeerTransport.BeginFrame() => ByteBuffer.Rent();
    bool IPeerTransport.HasWaiting(NodeId peer) => _cluster.Peers.HasWaiting(Id, peer.Value);
    bool IPeerTransport.TrySend(NodeId peer, ByteBuffer frame, bool isUrgent)
    {
        Scheduler.CheckThread("sent a frame");
        byte[] copy = frame.Written.ToArray();
        frame.Return();
        Scheduler.Note(SimEvent.Send, Id, peer.Value, copy.Length, Scheduler.Log.IsTraced ? FrameText.Of(copy) : null);
        Rules.Left(this, peer, copy);
        return _cluster.Peers.Send(Id, peer.Value, copy, isUrgent);
    }

    public void Receive(int from, byte[] frame, long sentNs, Func<bool> stillOpen) => Do(Life, () =>
    {
        if (stillOpen())
        {
            HeardLateNs = Scheduler.NowNs - sentNs > RightsHistory.LateNs ? Scheduler.NowNs : HeardLateNs;
            Scheduler.Note(SimEvent.Deliver, Id, from, frame.Length);
            Rules.Hears(this, frame);
            Loops!.Receive(new NodeId((ushort)from), frame);
        }
    }, from);

    public void LinkChanged(int peer, bool up) =>
        Do(Life, () => Loops!.LinkChanged(new NodeId((ushort)peer), up), peer);

    /// <summary>A link begins: whoever lost its directory meanwhile is no longer who it was.</summary>
    public void Meet(SimNode peer)
    {
        int directory = peer.Directory;
        Do(Life, () =>
        {
            if (_directories.TryGetValue(peer.Id, out int known) && known != directory)
            {
                foreach (PartitionLoop loop in Loops!.Loops)
                {
                    loop.PostMemberReplaced(new NodeId((ushort)peer.Id));
                }
            }

            _directories[peer.Id] = directory;
        }, peer.Id);
    }

    // ---- Clients

    public ServerSession OpenSession(ClientStream stream)
    {
        ServerSession session = new(stream, this, _admission!, _config.Loops)
        {
            Caller = Access?.CallerOf(stream.Client),
        };
        _sessions.Add(session);
        return session;
    }

    /// <summary>A unary call arrives.</summary>
    public void Serve(int client, UnaryRequest request, TimeSpan timeLeft, Action<UnaryAnswer> answer) =>
        Do(Life, () => _unary!.Serve(client, request, timeLeft, answer), NewSource());

    /// <summary>The node stops: unary calls that wait for something end.</summary>
    public void EndUnaryWaits() => _unary?.EndWaits();

    /// <summary>A number for one more connection that something comes to the node over.</summary>
    public int NewSource() => ++_sourcesTaken;

    public void Forget(ServerSession session) => _sessions.Remove(session);

    /// <summary>Connections of clients are lost.</summary>
    public void ResetSessions()
    {
        Watches?.Reset();
        foreach (ServerSession session in _sessions.ToArray())
        {
            session.Reset();
        }
    }

    public void Answered(ServerSession session, ReadOnlySpan<byte> frame, int count)
    {
        Scheduler.Note(SimEvent.Reply, Id, count);
        Rules.Answered(this, session, frame, count);
    }

    private void Build()
    {
        ulong start = _random.Next();
        SegmentedLogOptions sizes = NodeParts.LogSizes(_config) with
        {
            LogId = ((ulong)Id << 32) | (uint)Directory,
            LogMade = _logOf == Directory,
        };
        SimLog log = new(this, SegmentedLog.Open(DataPath, sizes, Disk, Say));
        _logOf = Directory;
        GroupImage[] found = log.Images(_config.Layout);
        if (Witness.Recovered(found, _config.Loops) is { } wrong)
        {
            Rules.Break("a restart finds what was on stable storage", $"node {Id}: {wrong}");
        }

        Access = _config.HasUsers ? new SimAccess(this) : null;
        NodeParts parts = NodeParts.Assemble(this, _cluster, log, start);
        Access?.Attach(this, parts.View, parts.Loops, start);
        Keeper = parts.Keeper;
        Loops = parts.Loops;
        Keeper.Attach(
            new StoredWitness(this, Loops, parts.States),
            new CheckpointSteps(this, Keeper, _random, _config.TurnNs).Wake);
        View = parts.View;
        ChangeLogs = parts.Changes;
        Watches = new WatchServing(this, _config, parts.Changes, start);
        _admission = parts.Admission;
        _unary = new UnaryServer(
            this,
            parts,
            _cluster.Clients.ChannelOfNode(Id),
            NodeParts.Addresses(_config),
            _cluster.Clients.NewSessionId);
    }

    private void EndDisk(bool power) => (power ? () => Disk.Crash(_random.ToRandom()) : (Action)Disk.Kill)();

    private int Fault(DiskStep step, string path)
    {
        Scheduler.CheckThread("used the disk");
        return _dead.Life == Life ? throw new SimCrashException(_dead.Power) : DiskFault?.Invoke(step, path) ?? 0;
    }

    public void Say(ReportLine line) => Scheduler.Note(SimEvent.Report, Id, words: line.ToString());

    /// <summary>The log or the stored state is dead: the process ends, and somebody starts it again.</summary>
    public void Die(Exception error)
    {
        if (error is SimCrashException crash)
        {
            _dead = (Life, crash.Power);
            After(0, () => Crash(crash.Power));
            return;
        }

        Scheduler.Note(SimEvent.StorageDead, Id, words: error.Message);
        _cluster.StorageDied(this, error);
        After(0, () => Crash(power: false));
    }
}
