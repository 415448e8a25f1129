using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions;

/// <summary>
/// A large backlog of committed entries is applied in slices, one a turn, between which a loop takes in ticks and
/// messages.
/// </summary>
public sealed class AppliedSliceTests
{
    private const int ApplyBytesMax = 2_000;
    private const int Writes = 300;
    private const int HeartbeatTicks = 2;
    private static readonly string s_value = new('v', 100);

    [Fact]
    public void A_turn_applies_a_bounded_number_of_bytes()
    {
        ModelCluster cluster = Backlog(nodes: 1, out NodeId leader, out ModelSink sink);
        Group partition = cluster[leader.Value].Loops!.Group(0);
        int slices = 0;
        while (partition.Applied < partition.Core.LastIndex)
        {
            LogIndex before = partition.Applied;
            cluster.Step();
            Assert.InRange(BytesBetween(partition, before, partition.Applied), 0, ApplyBytesMax);
            slices++;
        }

        Assert.InRange(slices, Writes * 100 / ApplyBytesMax, int.MaxValue);
        cluster.Settle();
        Assert.Equal(Writes, sink.Replies.Count);
        Assert.All(sink.Replies.Values, static reply => Assert.Equal(OutcomeStatus.Applied, reply.Status));
    }

    [Fact]
    public void Heartbeats_leave_while_a_backlog_is_applied()
    {
        ModelCluster cluster = Backlog(nodes: 2, out NodeId leader, out _);
        Group partition = cluster[leader.Value].Loops!.Group(0);
        int turns = 0;
        for (; partition.Applied < partition.Core.LastIndex; turns++)
        {
            // A tick every second turn: the other node answers nothing meanwhile, and must not be missed for an
            // election timeout.
            if (turns % 2 == 0)
            {
                cluster[leader.Value].Loops!.Loops[0].PostTick();
            }

            cluster.Step();
        }

        int heartbeats = 0;
        cluster.Loses = (from, to, frame) =>
        {
            ReadOnlySpan<byte> rest = frame;
            while (from == leader && PeerFrame.TryRead(ref rest, out _, out RaftMessage message, out _, out _))
            {
                heartbeats += message.Kind == RaftMessageKind.Heartbeat ? 1 : 0;
            }

            return false;
        };
        cluster.Settle();
        int due = turns / 2 / HeartbeatTicks;
        Assert.InRange(due, 5, int.MaxValue);
        Assert.InRange(heartbeats, due - 1, int.MaxValue);
    }

    [Fact]
    public void A_read_waits_until_the_backlog_before_it_is_applied()
    {
        ModelCluster cluster = Backlog(nodes: 1, out NodeId leader, out _);
        Group partition = cluster[leader.Value].Loops!.Group(0);
        cluster.Step();
        LogIndex committed = partition.Core.CommitIndex;
        Assert.True(partition.Applied < committed);
        ModelSink read = cluster.Send(leader, (CommandKind.Get, $"k{Writes - 1}", ""));
        while (partition.Applied < committed)
        {
            Assert.Empty(read.Replies);
            cluster.Step();
        }

        cluster.Settle();
        Assert.Equal((OutcomeStatus.Found, s_value), (read.Replies[0].Status, read.Replies[0].Value));
    }

    [Fact]
    public void A_follower_that_catches_up_applies_everything()
    {
        ModelCluster cluster = new(nodes: 3, configure: Small);
        NodeId leader = cluster.Elect();
        NodeId follower = cluster.Ids.First(id => id != leader);
        cluster.Cut.Add(follower);
        cluster.Send(leader, Commands());
        cluster.Settle();
        cluster.Cut.Clear();
        cluster.Tick(10);
        Assert.Equal(
            cluster[leader.Value].Loops!.Group(0).State.Digest, cluster[follower.Value].Loops!.Group(0).State.Digest);
        Assert.Equal(cluster[leader.Value].Loops!.Group(0).Applied, cluster[follower.Value].Loops!.Group(0).Applied);
    }

    private static LoopOptions Small(LoopOptions options) => options with
    {
        HeartbeatTicks = HeartbeatTicks,
        EntryBytesMax = 500,
        RaftLimits = new RaftLimits { ApplyBytesMax = ApplyBytesMax },
    };

    private static (CommandKind Kind, string Key, string Value)[] Commands() =>
        [.. Enumerable.Range(0, Writes).Select(static i => (CommandKind.Set, $"k{i}", s_value))];

    /// <summary>
    /// A leader that will find in its next turn that many entries are committed: only its own log was late.
    /// </summary>
    private static ModelCluster Backlog(int nodes, out NodeId leader, out ModelSink sink)
    {
        ModelCluster cluster = new(nodes, configure: Small);
        leader = cluster.Elect();
        cluster.Settle();
        cluster.Hung.Add(leader);
        sink = cluster.Send(leader, Commands());
        cluster.Settle();
        Assert.Empty(sink.Replies);
        cluster.Hung.Clear();
        Assert.True(cluster[leader.Value].Log.Sync());
        return cluster;
    }

    private static long BytesBetween(Group partition, LogIndex before, LogIndex last)
    {
        long bytes = 0;
        for (LogIndex index = before.Next(); index <= last; index = index.Next())
        {
            bytes += partition.Core.Payload(index, out _, out _).Length;
        }

        return bytes;
    }
}
