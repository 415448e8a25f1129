using Kahuna.Server.Hosting;
using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Storage.Checkpoints;
using Kahuna.Tests.Storage;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;

namespace Kahuna.Tests.Partitions;

/// <summary>
/// An exception that nobody expected ends the process, on whichever thread a turn was lent; nothing goes on after it.
/// </summary>
public sealed class FatalErrorTests
{
    private readonly RecordedErrors _ends = new();

    public static TheoryData<Type> Errors => [typeof(OutOfMemoryException), typeof(InvalidOperationException)];

    [Theory]
    [MemberData(nameof(Errors))]
    public void A_sink_that_throws_on_a_clients_thread(Type type)
    {
        Exception error = Planned(type);
        ModelCluster cluster = Elected(1);
        cluster.Lends = true;
        cluster.Send(new NodeId(1), Command(CommandKind.Get, "a"), to: new ModelSink { Fails = error });
        AssertEnded(cluster, error);
    }

    [Theory]
    [MemberData(nameof(Errors))]
    public void A_sink_that_throws_on_the_logs_thread(Type type)
    {
        Exception error = Planned(type);
        ModelCluster cluster = Elected(1);
        cluster.Lends = true;
        cluster.Send(new NodeId(1), Command(CommandKind.Set, "a"), to: new ModelSink { Fails = error });
        Assert.Empty(_ends.Raised);
        cluster[1].Log.Sync();
        AssertEnded(cluster, error);
    }

    [Theory]
    [MemberData(nameof(Errors))]
    public void A_link_that_throws_on_a_peers_thread(Type type)
    {
        Exception error = Planned(type);
        ModelCluster cluster = Elected(3);
        NodeId leader = cluster.LeaderOf();
        NodeId follower = cluster.Ids.First(id => id != leader);
        cluster.Lends = true;
        cluster[follower.Value].SendFails = error;
        cluster.Send(leader, Command(CommandKind.Set, "a"));
        cluster.Settle();
        AssertEnded(cluster, error, follower);
    }

    [Theory]
    [MemberData(nameof(Errors))]
    public void A_link_that_throws_in_a_tick(Type type)
    {
        Exception error = Planned(type);
        ModelCluster cluster = Elected(3);
        NodeId leader = cluster.LeaderOf();
        cluster.Lends = true;
        cluster[leader.Value].SendFails = error;
        for (int i = 0; i < 4; i++)
        {
            cluster[leader.Value].Loops!.Loops[0].PostTick();
        }

        AssertEnded(cluster, error, leader);
    }

    [Theory]
    [MemberData(nameof(Errors))]
    public void A_sink_that_throws_on_a_thread_of_the_scheduler(Type type)
    {
        Exception error = Planned(type);
        ModelCluster cluster = Elected(1);
        cluster.Send(new NodeId(1), Command(CommandKind.Get, "a"), to: new ModelSink { Fails = error });
        cluster.Settle();
        AssertEnded(cluster, error);
    }

    [Fact]
    public void A_scheduler_that_has_no_thread()
    {
        ModelCluster cluster = Elected(1);
        LoopPorts ports = cluster[1].Ports! with { Scheduler = new ThrowingScheduler(), FatalErrors = _ends };
        LoopTurns turns = new(cluster[1].Loops!.Loops[0], static () => { }, ports);
        turns.Signal(mayRunInline: false);
        Assert.IsType<OutOfMemoryException>(Assert.Single(_ends.Raised).Error);
    }

    [Fact]
    public async Task A_sink_that_throws_on_a_thread_of_the_shipped_log()
    {
        using TemporaryDirectory directory = new();
        await using Server.Storage.ThreadedLog log = Server.Storage.ThreadedLog.Open(
            directory.Path, new Server.Storage.SegmentedLogOptions(), _ends);
        ILogWriter writer = log.OpenWriter(new ThrowingLogSink());
        writer.Save(new GroupId(1), new HardState(new Term(1), NodeId.None, default));
        writer.Submit();
        await _ends.First.WaitAsync(TimeSpan.FromSeconds(60));
        Assert.Equal("the thread log", Assert.Single(_ends.Raised).Where);
    }

    [Fact]
    public async Task A_report_that_throws_on_the_state_thread()
    {
        ModelCluster cluster = new(1);
        CheckpointService keeper = new(
            new CheckpointOptions { Self = new NodeId(1), FirstTransfer = 1 },
            new CheckpointPorts(
                new FileStateStore(new ModelDisk(), "/other"),
                cluster[1].Log,
                new NoTransport(),
                TimeProvider.System,
                static _ => { }),
            static error => throw error);
        using CheckpointThread thread = new(keeper, _ends);
        keeper.Attach(new ThrowingLoops(), thread.Wake);
        thread.Start();
        keeper.Post(new FlushDue(new GroupId(1)));
        await _ends.First.WaitAsync(TimeSpan.FromSeconds(60));
        Assert.Equal("the state thread", Assert.Single(_ends.Raised).Where);
    }

    private static Exception Planned(Type type) => (Exception)Activator.CreateInstance(type, "planned")!;

    private static byte[] Command(CommandKind kind, string key)
    {
        ByteBuffer buffer = ByteBuffer.Rent();
        new Command
        {
            Kind = kind,
            Durability = Durability.Persistent,
            Key = System.Text.Encoding.UTF8.GetBytes(key),
        }.Write(buffer);
        byte[] bytes = buffer.Written.ToArray();
        buffer.Return();
        return bytes;
    }

    private ModelCluster Elected(int nodes)
    {
        ModelCluster cluster = new(nodes, fatalErrors: _ends);
        cluster.Elect();
        return cluster;
    }

    /// <summary>It was told once, with the exception, and no turn follows whatever comes.</summary>
    private void AssertEnded(ModelCluster cluster, Exception error, NodeId? node = null)
    {
        Assert.Same(error, Assert.Single(_ends.Raised).Error);
        PartitionLoop loop = cluster[node?.Value ?? 1].Loops!.Loops[0];
        long turns = loop.Turns;
        loop.PostTick();
        cluster.Settle();
        Assert.Equal(turns, loop.Turns);
        Assert.Single(_ends.Raised);
    }

    private sealed class ThrowingScheduler : ITurnScheduler
    {
        public void Schedule(ITurns loop, bool mayRunInline) => throw new OutOfMemoryException("planned");

        public void Later(Action action, int ms) => throw new OutOfMemoryException("planned");
    }

    private sealed class ThrowingLogSink : ILogSink
    {
        public void Persisted(ulong batch) => throw new OutOfMemoryException("planned");

        public void Fetched(GroupId group, NodeId follower, LogIndex first, ByteBuffer entries) => entries.Return();

        public void Failed(Exception error) => throw error;
    }

    private sealed class ThrowingLoops : ICheckpointLoops
    {
        public bool Post(CheckpointRequest call) => throw new OutOfMemoryException("planned");
    }

    private sealed class NoTransport : IPeerTransport
    {
        public ByteBuffer BeginFrame() => ByteBuffer.Rent();

        public bool HasWaiting(NodeId peer) => false;

        public bool TrySend(NodeId peer, ByteBuffer frame, bool isUrgent)
        {
            frame.Return();
            return false;
        }
    }
}
