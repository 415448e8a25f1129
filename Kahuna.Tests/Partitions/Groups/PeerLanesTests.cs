using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Buffers;

namespace Kahuna.Tests.Partitions.Groups;

/// <summary>Which messages pass entries that wait for a peer, and which stay behind them.</summary>
public sealed class PeerLanesTests
{
    private static readonly NodeId s_peer = new(2);
    private readonly Transport _transport = new();
    private readonly PeerLanes _lanes;

    public PeerLanesTests() => _lanes = new PeerLanes(_transport, s_peer);

    public static TheoryData<int, bool, bool> Kinds()
    {
        TheoryData<int, bool, bool> kinds = [];
        foreach (RaftMessageKind kind in Enum.GetValues<RaftMessageKind>()
            .Where(static kind => kind != RaftMessageKind.None))
        {
            kinds.Add((int)kind, false, kind is not (RaftMessageKind.Append or RaftMessageKind.Forward));
        }

        kinds.Add((int)RaftMessageKind.Heartbeat, true, false);
        return kinds;
    }

    [Theory]
    [MemberData(nameof(Kinds))]
    public void Only_entries_forwarded_commands_and_what_follows_them_in_order_wait(
        int kind, bool isInOrder, bool isUrgent)
    {
        _transport.IsWaiting = true;
        Add(new RaftMessage { Kind = (RaftMessageKind)kind, InOrder = isInOrder }, 7);
        Assert.True(_lanes.TrySend());
        Assert.Equal([(isUrgent, "7")], _transport.Sent);
    }

    [Fact]
    public void While_something_waits_for_the_peer_the_urgent_ones_leave_first_in_a_frame_of_their_own()
    {
        _transport.IsWaiting = true;
        AddAll();
        Assert.True(_lanes.TrySend());
        Assert.Equal([(true, "2 4"), (false, "1 3")], _transport.Sent);
    }

    [Fact]
    public void While_nothing_waits_all_leave_as_one_frame_behind_the_entries()
    {
        AddAll();
        Assert.True(_lanes.TrySend());
        Assert.Equal([(false, "1 3 2 4")], _transport.Sent);
        Assert.True(_lanes.TrySend());
        Assert.Single(_transport.Sent);
    }

    [Fact]
    public void What_is_lost_is_said_whichever_frame_it_was_in()
    {
        _transport.IsWaiting = true;
        _transport.Drops = static isUrgent => isUrgent;
        AddAll();
        Assert.False(_lanes.TrySend());
        _transport.Drops = static isUrgent => !isUrgent;
        AddAll();
        Assert.False(_lanes.TrySend());
    }

    private void AddAll()
    {
        Add(new RaftMessage { Kind = RaftMessageKind.Append }, 1);
        Add(new RaftMessage { Kind = RaftMessageKind.Heartbeat }, 2);
        Add(new RaftMessage { Kind = RaftMessageKind.Append }, 3);
        Add(new RaftMessage { Kind = RaftMessageKind.VoteReply }, 4);
    }

    private void Add(in RaftMessage message, byte mark) => _lanes.For(message).Append([mark]);

    private sealed class Transport : IPeerTransport
    {
        private const int RoomInFront = 4;

        public List<(bool IsUrgent, string Marks)> Sent { get; } = [];

        public bool IsWaiting { get; set; }

        public Func<bool, bool> Drops { get; set; } = static _ => false;

        public ByteBuffer BeginFrame()
        {
            ByteBuffer frame = ByteBuffer.Rent();
            frame.Take(RoomInFront).Clear();
            return frame;
        }

        public bool HasWaiting(NodeId peer) => IsWaiting;

        public bool TrySend(NodeId peer, ByteBuffer frame, bool isUrgent = false)
        {
            Assert.Equal(s_peer, peer);
            Sent.Add((isUrgent, string.Join(' ', frame.Written[RoomInFront..].ToArray())));
            frame.Return();
            return !Drops(isUrgent);
        }
    }
}
