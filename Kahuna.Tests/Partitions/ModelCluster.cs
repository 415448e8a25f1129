using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.Storage.Checkpoints;
using Kahuna.Tests.Storage;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Routing;

namespace Kahuna.Tests.Partitions;

/// <summary>
/// The shipped loops of a few nodes over a model log and a model network, stepped by hand on one thread. Time is a
/// number; a message is delivered when the test says so.
/// </summary>
internal sealed class ModelCluster : ITurnScheduler
{
    private readonly Dictionary<NodeId, ModelNode> _nodes = [];
    private readonly Queue<ITurns> _runnable = new();
    private readonly Queue<(NodeId From, NodeId To, byte[] Frame)> _network = new();
    private readonly ModelTime _time = new();
    private readonly List<(long DueMs, Action Action)> _later = [];
    private readonly int _partitions;
    private readonly long _persistentBytesMax;
    private ulong _starts;

    /// <param name="nodes">Number of nodes.</param>
    /// <param name="partitions">Number of partitions.</param>
    /// <param name="configure">Changes the options of every loop.</param>
    /// <param name="storage">The shipped log and store over a model disk instead of the model log.</param>
    /// <param name="logLimitBytes">With storage: the size of the log past which writes are refused.</param>
    /// <param name="fatalErrors">Gets what a turn throws; null: it goes on to the test.</param>
    /// <param name="persistentBytesMax">Memory that the persistent data of a node may take up.</param>
    public ModelCluster(
        int nodes,
        int partitions = 1,
        Func<LoopOptions, LoopOptions>? configure = null,
        bool storage = false,
        long logLimitBytes = 16L << 30,
        IFatalErrors? fatalErrors = null,
        long persistentBytesMax = long.MaxValue)
    {
        FatalErrors = fatalErrors ?? RethrownErrors.Shared;
        _persistentBytesMax = persistentBytesMax;
        _partitions = partitions;
        Ids = [.. Enumerable.Range(1, nodes).Select(id => new NodeId((ushort)id))];
        Configure = configure ?? (options => options);
        foreach (NodeId id in Ids)
        {
            _nodes[id] = new ModelNode(id)
            {
                Storage = storage ? new ModelStorage(id.Value) { LogLimitBytes = logLimitBytes } : null,
            };
            Start(id);
        }
    }

    public NodeId[] Ids { get; }

    /// <summary>Changes the options of the loops that start from now on.</summary>
    public Func<LoopOptions, LoopOptions> Configure { get; set; }

    /// <summary>Nodes whose messages, both ways, are lost.</summary>
    public HashSet<NodeId> Cut { get; } = [];

    /// <summary>Nodes whose log takes everything and brings nothing to stable storage.</summary>
    public HashSet<NodeId> Hung { get; } = [];

    /// <summary>Decides whether a frame is lost.</summary>
    public Func<NodeId, NodeId, byte[], bool>? Loses { get; set; }

    /// <summary>Turns run on the thread that signals, as in a node.</summary>
    public bool Lends { get; set; }

    /// <summary>Gets what a turn throws.</summary>
    public IFatalErrors FatalErrors { get; }

    public ModelNode this[int id] => _nodes[new NodeId((ushort)id)];

    public NodeId LeaderOf(int partition = 0)
    {
        foreach (ModelNode node in _nodes.Values)
        {
            if (node.Loops is { } loops
                && !Cut.Contains(node.Id)
                && loops.Group(partition) is { IsLeader: true, Status.Serving: true })
            {
                return node.Id;
            }
        }

        return NodeId.None;
    }

    public void Start(NodeId id, VotingRight voting = VotingRight.Full)
    {
        ModelNode node = _nodes[id];
        node.Storage?.Open();
        LoopOptions options = Configure(new LoopOptions
        {
            Self = id,
            Voters = Ids,
            PreferredLeader = _ => Ids[0],
            Seed = (id.Value * 7919UL) + (_starts << 20),
            FlushLogBytes = ModelStorage.KeepBytes / 2,
            Voting = voting,
        });
        ModelTransport transport = new(this, id);
        ILogStore log = node.Storage?.Log ?? (ILogStore)node.Log;
        IStateStore states = node.Storage?.States ?? new FileStateStore(new ModelDisk(), "/state");
        CheckpointOptions keeping = new()
        {
            Self = id,
            StateLimits = options.StateLimits,
            FirstTransfer = ++_starts << 32,
            SliceBytes = 1_000,
            ChunkBytes = 1_000,
            FreshLogBytes = 2_000,
            ChunksInFlight = 4,
        };
        node.Keeper = new CheckpointService(
            keeping,
            new CheckpointPorts(states, log, transport, _time, line => node.Lines.Add(line.ToString())),
            node.Failures.Add);
        node.Ports = new LoopPorts(_partitions, _time, this, log, transport, node)
        {
            States = states,
            Checkpoints = node.Keeper,
            FatalErrors = FatalErrors,
            Report = line => node.Lines.Add(line.ToString()),
            PersistentMemory = new PersistentMemory(_persistentBytesMax),
        };
        node.Loops = new LoopSet(options, node.Ports);
        node.Keeper.Attach(node.Loops, static () => { });
    }

    public void Crash(NodeId id)
    {
        _nodes[id].Loops = null;
        _nodes[id].Keeper = null;
        _nodes[id].Failures.Clear();
        _nodes[id].Log.Crash();
        _nodes[id].Storage?.Crash();
    }

    public void Schedule(ITurns loop, bool mayRunInline)
    {
        if (Lends && mayRunInline)
        {
            loop.RunTurns(1);
        }
        else
        {
            _runnable.Enqueue(loop);
        }
    }

    public void Later(Action action, int ms) => _later.Add((_time.NowMs + ms, action));

    /// <summary>Runs one turn of the first loop that is due.</summary>
    public void Step() => _runnable.Dequeue().RunTurns(1);

    /// <summary>Runs everything that can run without time passing: turns, syncs, deliveries.</summary>
    public void Settle(bool sync = true)
    {
        bool moved = true;
        while (moved)
        {
            moved = false;
            while (_runnable.TryDequeue(out ITurns? loop))
            {
                loop.RunTurns(1);
                moved = true;
            }

            foreach (ModelNode node in _nodes.Values)
            {
                if (sync && node.Loops is not null && !Hung.Contains(node.Id))
                {
                    moved |= node.Storage is { } storage ? storage.Step() : node.Log.Sync();
                }

                while (node.Keeper is { } keeper && keeper.Step())
                {
                    moved = true;
                }
            }

            while (_network.TryDequeue(out (NodeId From, NodeId To, byte[] Frame) sent))
            {
                if (!Cut.Contains(sent.From)
                    && !Cut.Contains(sent.To)
                    && Loses?.Invoke(sent.From, sent.To, sent.Frame) != true)
                {
                    _nodes[sent.To].Loops?.Receive(sent.From, sent.Frame);
                }

                moved = true;
            }
        }
    }

    /// <summary>Lets time pass without anything else.</summary>
    public void Pass(int ms)
    {
        _time.NowMs += ms;
        foreach ((long dueMs, Action action) in _later.ToArray())
        {
            if (dueMs <= _time.NowMs)
            {
                _later.Remove((dueMs, action));
                action();
            }
        }
    }

    /// <summary>Lets ticks pass, settling after each.</summary>
    public void Tick(int count = 1)
    {
        for (int i = 0; i < count; i++)
        {
            Pass(50);
            foreach (ModelNode node in _nodes.Values)
            {
                if (node.Loops is { } loops)
                {
                    node.Storage?.Tick();
                    foreach (PartitionLoop loop in loops.Loops)
                    {
                        loop.PostTick();
                    }
                }
            }

            Settle();
        }
    }

    /// <summary>Lets time pass until every partition has a leader that serves.</summary>
    public NodeId Elect(int ticksMax = 400)
    {
        for (int i = 0; i < ticksMax; i++)
        {
            if (Enumerable.Range(0, _partitions).All(partition => !LeaderOf(partition).IsNone))
            {
                return LeaderOf();
            }

            Tick();
        }

        throw new InvalidOperationException("no leader in time");
    }

    public ModelSink Send(NodeId node, params (CommandKind Kind, string Key, string Value)[] commands)
    {
        ModelSink sink = new();
        ByteBuffer buffer = ByteBuffer.Rent();
        ClientBatch batch = ClientBatch.Rent(buffer, sink, _time.Now());
        uint number = 0;
        foreach ((CommandKind kind, string key, string value) in commands)
        {
            Command command = new()
            {
                Kind = kind,
                Durability = Durability.Persistent,
                Key = System.Text.Encoding.UTF8.GetBytes(key),
                Value = System.Text.Encoding.UTF8.GetBytes(value),
            };
            int at = buffer.Length;
            command.Write(buffer);
            ushort partition = (ushort)InitialPartition.Of(command.Key, _partitions);
            batch.Add(new ClientOperation(at, buffer.Length - at, number++, 0, partition, command.IsRead));
        }

        _nodes[node].Loops!.Post(batch);
        return sink;
    }

    /// <summary>Sends one command with a time to live, or none.</summary>
    public ModelSink Send(NodeId node, CommandKind kind, string key, long ttlMs)
    {
        ModelSink sink = new();
        ByteBuffer buffer = ByteBuffer.Rent();
        ClientBatch batch = ClientBatch.Rent(buffer, sink, _time.Now());
        Command command = new()
        {
            Kind = kind,
            Durability = Durability.Persistent,
            Flags = ttlMs > 0 ? CommandFlags.Ttl : CommandFlags.None,
            TtlMs = ttlMs,
            Key = System.Text.Encoding.UTF8.GetBytes(key),
        };
        command.Write(buffer);
        batch.Add(new ClientOperation(
            0, buffer.Length, 0, 0, (ushort)InitialPartition.Of(command.Key, _partitions), command.IsRead));
        _nodes[node].Loops!.Post(batch);
        return sink;
    }

    /// <summary>Sends one encoded command.</summary>
    public ModelSink Send(NodeId node, byte[] command, uint waitMs = 0, ModelSink? to = null)
    {
        ModelSink sink = to ?? new ModelSink();
        ByteBuffer buffer = ByteBuffer.Rent();
        ClientBatch batch = ClientBatch.Rent(buffer, sink, _time.Now());
        buffer.Append(command);
        batch.Add(new ClientOperation(
            0,
            buffer.Length,
            0,
            waitMs,
            (ushort)InitialPartition.Of(Command.KeyOf(command), _partitions),
            command[0] >= (byte)CommandKind.Get));
        _nodes[node].Loops!.Post(batch);
        return sink;
    }

    /// <summary>Sends encoded commands with their numbers as one batch.</summary>
    public void Send(NodeId node, ReplySink sink, (uint Number, byte[] Command)[] commands)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        ClientBatch batch = ClientBatch.Rent(buffer, sink, _time.Now());
        foreach ((uint number, byte[] command) in commands)
        {
            int at = buffer.Length;
            buffer.Append(command);
            batch.Add(new ClientOperation(
                at,
                command.Length,
                number,
                0,
                (ushort)InitialPartition.Of(Command.KeyOf(command), _partitions),
                command[0] >= (byte)CommandKind.Get));
        }

        _nodes[node].Loops!.Post(batch);
    }

    private void Send(NodeId from, NodeId to, ByteBuffer frame)
    {
        _network.Enqueue((from, to, frame.Written.ToArray()));
        frame.Return();
    }

    internal sealed class ModelNode(NodeId id) : ILeadershipSink
    {
        public NodeId Id => id;

        public ModelLog Log { get; } = new();

        /// <summary>The shipped storage, where the cluster has it.</summary>
        public ModelStorage? Storage { get; init; }

        public CheckpointService? Keeper { get; set; }

        public LoopSet? Loops { get; set; }

        /// <summary>What the loops were given at the latest start.</summary>
        public LoopPorts? Ports { get; set; }

        public List<string> Lines { get; } = [];

        /// <summary>The map of slots that its meta group has recorded last.</summary>
        public SlotMap? Slots { get; private set; }

        public List<Exception> Failures { get; } = [];

        /// <summary>What sending to a peer throws.</summary>
        public Exception? SendFails { get; set; }

        void ILeadershipSink.LeadershipChanged(int partition, PartitionStatus status)
        {
        }

        void ILeadershipSink.SlotsChanged(SlotMap slots) => Slots = slots;

        void ILeadershipSink.PartitionFailed(int partition, Exception error) => Failures.Add(error);

        void ILeadershipSink.StorageFailed(Exception error) => Failures.Add(error);
    }

    private sealed class ModelTransport(ModelCluster cluster, NodeId self) : IPeerTransport
    {
        public ByteBuffer BeginFrame() => ByteBuffer.Rent();

        public bool HasWaiting(NodeId peer) => false;

        public bool TrySend(NodeId peer, ByteBuffer frame, bool isUrgent)
        {
            if (cluster[self.Value].SendFails is { } error)
            {
                throw error;
            }

            cluster.Send(self, peer, frame);
            return true;
        }
    }

    private sealed class ModelTime : TimeProvider
    {
        public long NowMs { get; set; } = 1000;

        public override long TimestampFrequency => 1000;

        public override long GetTimestamp() => NowMs;
    }
}

/// <summary>Collects the replies of one batch.</summary>
internal sealed class ModelSink() : ReplySink(8)
{
    public Dictionary<uint, (OutcomeStatus Status, long Revision, long Number, string Value)> Replies { get; } = [];

    /// <summary>Its client is gone.</summary>
    public bool IsGone { get; set; }

    /// <summary>What a delivery throws.</summary>
    public Exception? Fails { get; set; }

    /// <summary>Gets the bytes of each value.</summary>
    public Action<byte[]>? Raw { get; set; }

    public override bool IsClosed => IsGone;

    public override void Deliver(ByteBuffer frame, int count)
    {
        if (Fails is { } error)
        {
            throw error;
        }

        Frame.End(frame, count);
        ReadOnlySpan<byte> rest = frame.Written[(Frame.PrefixBytes + Frame.HeaderBytes)..];
        for (int i = 0; i < count; i++)
        {
            uint number = BitConverter.ToUInt32(rest);
            int length = BitConverter.ToInt32(rest[4..]);
            Assert.True(Outcome.TryRead(rest.Slice(Frame.ReplyHeaderBytes, length), out Outcome outcome));
            Raw?.Invoke(outcome.Value.ToArray());
            Replies.Add(
                number,
                (outcome.Status, outcome.Revision, outcome.Number, System.Text.Encoding.UTF8.GetString(outcome.Value)));
            rest = rest[(Frame.ReplyHeaderBytes + length)..];
        }

        Assert.True(rest.IsEmpty);
        frame.Return();
    }
}
