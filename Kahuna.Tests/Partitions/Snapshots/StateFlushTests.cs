using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.Storage.Checkpoints;
using Kahuna.Tests.State;
using Kahuna.Tests.Storage;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions.Snapshots;

/// <summary>What the state thread's storing does when the loops do something else than go on.</summary>
public sealed class StateFlushTests
{
    private static readonly GroupId s_group = new(1);

    [Fact]
    public void Loops_that_close_while_a_state_is_stored_are_no_failure()
    {
        StateDriver state = new();
        state.Set("key", "value");
        using StateView view = state.Machine.ViewAll();
        ModelDisk disk = new();
        List<Exception> failures = [];
        ClosingLoops loops = new();
        CheckpointOptions options = new() { Self = new NodeId(1), FirstTransfer = 1 };
        using CheckpointService keeper = new(
            options,
            new CheckpointPorts(
                new FileStateStore(disk, "/state"),
                new ModelLog(),
                new NoTransport(),
                TimeProvider.System,
                static _ => { }),
            failures.Add);
        keeper.Attach(loops, static () => { });

        keeper.Post(new FlushDue(s_group));
        Run(keeper);
        Assert.IsType<BeginView>(loops.Calls[^1]);
        keeper.Post(
            new ViewBegun(s_group, new CheckpointMark(new LogIndex(1), new Term(1), view.Summary), Whole: true));
        Run(keeper);
        ViewSlice slice = Assert.IsType<TakeRecords>(loops.Calls[^1]).Slice;
        view.TryTake(slice, 1_000);
        loops.Closed = true;
        keeper.Post(new RecordsTaken(s_group, slice, More: true, Ended: false, PreImageBytes: 0));
        Run(keeper);

        Assert.Empty(failures);
        Assert.Empty(disk.Files);
    }

    [Fact]
    public void Memory_is_given_back_once_for_many_groups()
    {
        HandClock clock = new();
        int rests = 0;
        List<Exception> failures = [];
        CheckpointOptions options = new() { Self = new NodeId(1), FirstTransfer = 1 };
        CheckpointPorts ports =
            new(
                new FileStateStore(new ModelDisk(), "/state"),
                new ModelLog(),
                new NoTransport(),
                clock,
                static _ => { })
            { Rest = () => rests++ };
        using CheckpointService keeper = new(options, ports, failures.Add);
        ServingLoops loops = new(keeper);
        keeper.Attach(loops, static () => { });
        List<int> slices = [];
        for (int round = 1; round <= 3; round++)
        {
            for (uint group = 1; group <= 8; group++)
            {
                keeper.Post(new FlushDue(new GroupId(group)));
            }

            Run(keeper);
            Assert.Equal(1, rests);
            slices.Add(loops.Slices.Count);
        }

        // Those of the first round went when it was over; those of the second serve the third, as there was no rest
        // between.
        Assert.True(slices[1] > slices[0]);
        Assert.Equal(slices[1], slices[2]);
        Assert.InRange(keeper.Due - keeper.Now, 1, options.RestPauseMs);
        clock.NowMs += options.RestPauseMs;
        Run(keeper);
        Assert.Equal(2, rests);
        Assert.Equal(NodeTime.Never, keeper.Due);
        Assert.Empty(failures);
    }

    [Fact]
    public void Records_that_changed_while_a_state_is_sent_are_handed_on_a_few_at_a_time()
    {
        const int ChunkBytes = 1_000;
        const int Chunks = 500;
        BeginView begun = new(s_group, Whole: true, Transfer: 7);
        ClosingLoops loops = new();
        using LiveRecords records = new(begun, default, loops);
        ByteBuffer target = ByteBuffer.Rent();
        Assert.Equal(SnapshotRead.NotYet, records.Read(target, ChunkBytes));
        ViewSlice slice = Assert.IsType<TakeRecords>(Assert.Single(loops.Calls)).Slice;
        for (int i = 0; i < Chunks; i++)
        {
            slice.AddPreImages(
                new ArraySegment<byte>(System.Buffers.ArrayPool<byte>.Shared.Rent(ChunkBytes), 0, ChunkBytes));
        }

        records.Taken(new RecordsTaken(s_group, slice, More: false, Ended: false, 0, begun.Transfer));
        int read = 0;
        while (records.Read(target, 3 * ChunkBytes) == SnapshotRead.Some)
        {
            Assert.InRange(target.Length, 1, 4 * ChunkBytes);
            read += target.Length;
            target.Length = 0;
        }

        Assert.Equal(Chunks * ChunkBytes, read);
        target.Return();
    }

    [Fact]
    public void A_state_is_never_stored_ahead_of_the_nodes_own_log()
    {
        ModelCluster cluster = new(3, storage: true);
        cluster.Elect();
        cluster.Tick(20);
        NodeId leader = cluster.Elect();
        cluster.Hung.Add(leader);
        ModelSink sink = cluster.Send(leader, (CommandKind.Set, "key", "value"));
        cluster.Tick(2);
        Assert.Equal(OutcomeStatus.Applied, Assert.Single(sink.Replies).Value.Status);

        // The others have it on their disks, so it is committed and applied; the leader's own disk has not.
        ModelCluster.ModelNode node = cluster[leader.Value];
        Group partition = node.Loops!.Group(0);
        Assert.True(partition.Applied > partition.Core.DurableIndex);
        node.Keeper!.Post(new FlushDue(s_group));
        cluster.Tick(2);
        Assert.True((node.Storage!.States!.Find(s_group)?.Index ?? default) <= partition.Core.DurableIndex);

        cluster.Hung.Clear();
        cluster.Tick(2);
        node.Keeper.Post(new FlushDue(s_group));
        cluster.Tick(2);
        Assert.Equal(partition.Applied, node.Storage.States.Find(s_group)?.Index);
    }

    [Fact]
    public void A_group_that_stops_while_its_state_waits_for_the_log_holds_up_no_other()
    {
        ModelCluster cluster = new(3, partitions: 2, storage: true);
        cluster.Elect();
        cluster.Tick(20);
        NodeId leader = cluster.Elect();
        ModelCluster.ModelNode node = cluster[leader.Value];
        Group stops = node.Loops!.Group(InitialPartition.Of("key"u8, 2));
        Group other = node.Loops.Group(1 - stops.Index);
        cluster.Hung.Add(leader);
        cluster.Send(leader, (CommandKind.Set, "key", "value"));
        cluster.Tick(2);
        Assert.True(stops.Applied > stops.Core.DurableIndex);
        node.Keeper!.Post(new FlushDue(stops.Id));
        cluster.Tick(2);

        stops.Fail();
        cluster.Hung.Clear();
        cluster.Tick(2);
        Assert.True((node.Storage!.States!.Find(stops.Id)?.Index ?? default) < stops.Applied);
        node.Keeper.Post(new FlushDue(other.Id));
        cluster.Tick(2);
        Assert.Equal(other.Applied, node.Storage.States.Find(other.Id)?.Index);
    }

    [Fact]
    public void What_had_to_be_faster_than_the_rate_is_not_waited_for_afterwards()
    {
        // Many records change before they are stored, so storing does not keep to its rate.
        CheckWait(states: 1, keys: 200, preImageBytes: 1L << 40);
    }

    [Fact]
    public void What_states_of_one_slice_owe_is_not_waited_for_by_the_first_that_is_larger() =>
        CheckWait(states: 1_000, keys: 1, preImageBytes: 0);

    /// <summary>After these states, storing another one waits for about one slice's time.</summary>
    private static void CheckWait(int states, int keys, long preImageBytes)
    {
        List<Exception> failures = [];
        CheckpointOptions options = new()
        {
            Self = new NodeId(1),
            FirstTransfer = 1,
            BytesPerSecond = 10_000,
            SliceBytes = 1_000,
        };
        CheckpointPorts ports = new(
            new FileStateStore(new ModelDisk(), "/state"),
            new ModelLog(),
            new NoTransport(),
            new HandClock { NowMs = 1 },
            static _ => { });
        using CheckpointService keeper = new(options, ports, failures.Add);
        ServingLoops loops = new(keeper, keys) { PreImageBytes = preImageBytes };
        keeper.Attach(loops, static () => { });
        for (int i = 0; i < states; i++)
        {
            keeper.Post(new FlushDue(s_group));
            Run(keeper);
        }

        Assert.Equal(new LogIndex((ulong)states), ports.Store.Find(s_group)?.Index);
        (loops.PreImageBytes, loops.Keys) = (0, 200);
        keeper.Post(new FlushDue(new GroupId(2)));
        Run(keeper);
        Assert.InRange(keeper.Due - keeper.Now, 1, 1_000);
        Assert.Empty(failures);
    }

    private static void Run(CheckpointService keeper)
    {
        while (keeper.Step())
        {
        }
    }

    private sealed class ClosingLoops : ICheckpointLoops
    {
        public List<CheckpointRequest> Calls { get; } = [];

        public bool Closed { get; set; }

        public bool Post(CheckpointRequest call)
        {
            if (!Closed)
            {
                Calls.Add(call);
            }

            return !Closed;
        }
    }

    /// <summary>Loops whose groups all have the same small state, which moves on with each view.</summary>
    private sealed class ServingLoops(CheckpointService keeper, int keys = 1) : ICheckpointLoops
    {
        private readonly StateDriver _state = new();
        private StateView? _view;
        private ulong _index;

        public HashSet<ViewSlice> Slices { get; } = [];

        public long PreImageBytes { get; set; }

        /// <summary>Keys of the state from the next view on.</summary>
        public int Keys { get; set; } = keys;

        public bool Post(CheckpointRequest call)
        {
            if (call is BeginView)
            {
                _index++;
                for (int i = 0; i < Keys; i++)
                {
                    _state.Set($"key {i}", $"value {_index}");
                }

                _view = _state.Machine.ViewAll();
                keeper.Post(new ViewBegun(
                    call.Group, new CheckpointMark(new LogIndex(_index), new Term(1), _view.Summary), Whole: true));
            }
            else if (call is TakeRecords take)
            {
                Slices.Add(take.Slice);
                bool more = _view!.TryTake(take.Slice, take.BytesMax);
                keeper.Post(new RecordsTaken(call.Group, take.Slice, more, Ended: false, PreImageBytes));
                if (!more)
                {
                    _view.Dispose();
                }
            }

            return true;
        }
    }

    private sealed class HandClock : TimeProvider
    {
        public long NowMs { get; set; } = 1_000_000;

        public override long TimestampFrequency => 1_000;

        public override long GetTimestamp() => NowMs;
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
