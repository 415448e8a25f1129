using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;
using Kahuna.Server.Storage.Checkpoints;
using Kahuna.Tests.State;
using Kahuna.Tests.Storage;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Partitions.Snapshots;

/// <summary>How long a leader goes on with a state that it sends: as long as the follower is there.</summary>
public sealed class SnapshotSourceTests : IDisposable
{
    private static readonly NodeId s_follower = new(2);
    private static readonly GroupId[] s_groups = [new(1), new(2)];

    private readonly HandClock _clock = new();
    private readonly Transport _transport = new();
    private readonly Loops _loops = new();
    private readonly List<string> _lines = [];
    private readonly List<Exception> _failures = [];
    private readonly CheckpointOptions _options =
        new() { Self = new NodeId(1), FirstTransfer = 1, ChunkBytes = 16, ChunksInFlight = 8 };
    private readonly CheckpointService _keeper;

    public SnapshotSourceTests()
    {
        FileStateStore store = new(new ModelDisk(), "/state");
        foreach (GroupId group in s_groups)
        {
            Fill(store, group);
        }

        _keeper = new CheckpointService(
            _options,
            new CheckpointPorts(store, new ModelLog(), _transport, _clock, line => _lines.Add(line.ToString())),
            _failures.Add);
        _keeper.Attach(_loops, static () => { });
    }

    public void Dispose() => _keeper.Dispose();

    [Fact]
    public void Follower_that_says_that_it_loads_is_waited_for()
    {
        Begin();

        // One of them is loaded, the other one has to wait for that, and the follower says so of both.
        for (int i = 0; i < 60; i++)
        {
            Pass(1_000);
            Answer(SnapshotFrame.LoadingFlag);
        }

        Assert.DoesNotContain(_lines, static line => line.Contains("has not answered", StringComparison.Ordinal));
        Assert.Empty(_loops.Ended);
        Answer(SnapshotFrame.DoneFlag);
        Assert.Equal([(s_groups[0], true), (s_groups[1], true)], _loops.Ended);
        Assert.Empty(_failures);
    }

    [Fact]
    public void Follower_that_says_nothing_is_given_up()
    {
        Begin();
        Pass(_options.GiveUpMs - 1);
        Assert.Empty(_loops.Ended);
        Pass(_options.ResendMs);
        Assert.Equal(2, _lines.Count(static line => line.Contains("has not answered", StringComparison.Ordinal)));
        Assert.Equal([(s_groups[0], false), (s_groups[1], false)], _loops.Ended);
        Assert.Empty(_failures);
    }

    [Fact]
    public void An_answer_that_others_have_overtaken_does_not_begin_a_transfer_anew()
    {
        Begin();
        SnapshotHeader last = _transport.Transfers[s_groups[0]];
        Assert.InRange(last.Chunk, 5UL, ulong.MaxValue);
        Say(last, chunk: 4);
        foreach (ulong chunk in new ulong[] { 0, 1, 2, 3, 0, 4 })
        {
            Say(last, chunk);
            Pass(10);
        }

        // The next one to be taken is asked for again and again: what came after it has arrived, and it has not.
        _transport.Sent.Clear();
        Say(last, chunk: 4);
        Assert.Empty(_transport.Sent);
        Say(last, chunk: 4);
        Assert.Equal((last.Transfer, 4UL), (_transport.Sent[0].Transfer, _transport.Sent[0].Chunk));
        Say(last, chunk: 5);
        Pass(_options.ResendMs);
        Say(last, chunk: 0);
        Assert.Equal(last.Transfer, _transport.Transfers[s_groups[0]].Transfer);
        Assert.Empty(_failures);
    }

    [Fact]
    public void A_follower_that_has_lost_everything_gets_the_state_from_the_beginning()
    {
        Begin();
        SnapshotHeader last = _transport.Transfers[s_groups[0]];
        Say(last, chunk: 4);
        Say(last, chunk: 0);
        _transport.Sent.Clear();
        Pass(_options.ResendMs);
        Assert.Contains(_transport.Sent, header => header.Transfer == last.Transfer && header.Chunk == 4);
        _transport.Sent.Clear();
        Say(last, chunk: 0);
        SnapshotHeader first = _transport.Sent.Find(
            header => header.Group == s_groups[0] && header.Transfer != last.Transfer);
        Assert.Equal((s_groups[0], 0UL), (first.Group, first.Chunk));
        Assert.Empty(_failures);
    }

    private static void Fill(FileStateStore store, GroupId group)
    {
        StateDriver state = new();
        for (int i = 0; i < 10; i++)
        {
            state.Set($"key {i}", "value");
        }

        using StateView view = state.Machine.ViewAll();
        ViewSlice slice = new(10_000);
        Assert.False(view.TryTake(slice, 10_000));
        using IStateWriter writer = store.BeginWrite(
            group, new CheckpointMark(new LogIndex(1), new Term(1), view.Summary), whole: true);
        writer.Add(slice.Rows.Written);
        writer.Commit();
    }

    private void Begin()
    {
        foreach (GroupId group in s_groups)
        {
            _keeper.Post(new SnapshotWanted(group, s_follower, new Term(1)));
        }

        Run();
        Assert.Equal(s_groups, _transport.Transfers.Keys.OrderBy(static group => group.Value));
    }

    private void Answer(byte flag)
    {
        foreach (SnapshotHeader header in _transport.Transfers.Values.OrderBy(static header => header.Group.Value))
        {
            ByteBuffer frame = ByteBuffer.Rent();
            SnapshotFrame.WriteAnswer(frame, header with { Flags = flag });
            _keeper.Receive(s_follower, frame.Written);
            frame.Return();
        }

        Run();
    }

    /// <summary>The follower has said that this is the next chunk that it can take.</summary>
    private void Say(SnapshotHeader header, ulong chunk)
    {
        ByteBuffer frame = ByteBuffer.Rent();
        SnapshotFrame.WriteAnswer(frame, header with { Chunk = chunk, Flags = 0 });
        _keeper.Receive(s_follower, frame.Written);
        frame.Return();
        Run();
    }

    private void Pass(int ms)
    {
        _clock.NowMs += ms;
        Run();
    }

    private void Run()
    {
        while (_keeper.Step())
        {
        }
    }

    private sealed class Loops : ICheckpointLoops
    {
        public List<(GroupId Group, bool Installed)> Ended { get; } = [];

        public bool Post(CheckpointRequest call)
        {
            SnapshotSent sent = Assert.IsType<SnapshotSent>(call);
            Ended.Add((sent.Group, sent.Installed));
            return true;
        }
    }

    private sealed class Transport : IPeerTransport
    {
        /// <summary>What was last sent of each group.</summary>
        public Dictionary<GroupId, SnapshotHeader> Transfers { get; } = [];

        /// <summary>Everything that was sent.</summary>
        public List<SnapshotHeader> Sent { get; } = [];

        public ByteBuffer BeginFrame() => ByteBuffer.Rent();

        public bool HasWaiting(NodeId peer) => false;

        public bool TrySend(NodeId peer, ByteBuffer frame, bool isUrgent = false)
        {
            SnapshotHeader header = SnapshotFrame.ReadHeader(frame.Written);
            Transfers[header.Group] = header;
            Sent.Add(header);
            frame.Return();
            return true;
        }
    }

    private sealed class HandClock : TimeProvider
    {
        public long NowMs { get; set; } = 1_000_000;

        public override long TimestampFrequency => 1_000;

        public override long GetTimestamp() => NowMs;
    }
}
