using Kahuna.Client.Wire.Buffers;
using Kahuna.Server.Partitions;
using Kahuna.Server.Partitions.States;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.Storage.States;
using Kahuna.Tests.State;
using Kahuna.Tests.Storage;

namespace Kahuna.Tests.Partitions;

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
        StateKeeperOptions options = new() { Self = new NodeId(1), FirstTransfer = 1 };
        using StateKeeper keeper = new(options, new KeeperPorts(new FileStateStore(disk, "/state"), new ModelLog(), new NoTransport(), TimeProvider.System, static _ => { }), failures.Add);
        keeper.Attach(loops, static () => { });

        keeper.Post(new FlushDue(s_group));
        Run(keeper);
        Assert.IsType<BeginView>(loops.Calls[^1]);
        keeper.Post(new ViewBegun(s_group, new StateMark(new LogIndex(1), new Term(1), view.Summary), Whole: true));
        Run(keeper);
        StateSlice slice = Assert.IsType<TakeRecords>(loops.Calls[^1]).Slice;
        view.TryTake(slice, 1_000);
        loops.Closed = true;
        keeper.Post(new RecordsTaken(s_group, slice, More: true, Ended: false, AsideBytes: 0));
        Run(keeper);

        Assert.Empty(failures);
        Assert.Empty(disk.Files);
    }

    private static void Run(StateKeeper keeper)
    {
        while (keeper.Step())
        {
        }
    }

    private sealed class ClosingLoops : IStateLoops
    {
        public List<StateCall> Calls { get; } = [];

        public bool Closed { get; set; }

        public bool Post(StateCall call)
        {
            if (!Closed)
            {
                Calls.Add(call);
            }

            return !Closed;
        }
    }

    private sealed class NoTransport : IPeerTransport
    {
        public ByteBuffer BeginFrame() => ByteBuffer.Rent();

        public bool TrySend(NodeId peer, ByteBuffer frame)
        {
            frame.Return();
            return false;
        }
    }
}
