using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions;

/// <summary>
/// A disk that does not finish and does not fail: its node leads nothing and seeks nothing until it moves again.
/// </summary>
public sealed class HangingDiskTests
{
    private const int ElectionTicks = 16;
    private readonly ModelCluster _cluster = new(3);

    public HangingDiskTests()
    {
        _cluster.Elect();
        _cluster.Tick(100);
    }

    [Fact]
    public void Leader_whose_disk_hangs_hands_leadership_over()
    {
        NodeId hung = _cluster.LeaderOf();
        _cluster.Hung.Add(hung);
        Write(hung);
        _cluster.Tick(ElectionTicks - 2);
        Assert.Equal(hung, _cluster.LeaderOf());
        _cluster.Tick(6);
        NodeId next = _cluster.LeaderOf();
        Assert.False(next.IsNone);
        Assert.NotEqual(hung, next);
        Assert.Equal(OutcomeStatus.Applied, Write(next));
        Assert.True(Partition(hung).Metrics.IsStalled);
        Assert.False(Partition(next).Metrics.IsStalled);
        Assert.Contains(
            _cluster[hung.Value].Lines, line => line.Contains("has not finished a write", StringComparison.Ordinal));

        // It is preferred, and is not asked again while it hangs.
        ulong term = Partition(next).Core.Term.Value;
        for (int i = 0; i < 600; i++)
        {
            _cluster.Tick();
            Assert.Equal(OutcomeStatus.Applied, Write(next));
        }

        Assert.Equal(term, Partition(next).Core.Term.Value);
    }

    [Fact]
    public void Leadership_comes_back_when_the_disk_has_moved_for_a_while()
    {
        NodeId hung = _cluster.LeaderOf();
        _cluster.Hung.Add(hung);
        Write(hung);
        _cluster.Tick(2 * ElectionTicks);
        _cluster.Hung.Remove(hung);
        _cluster.Tick(10 * ElectionTicks);
        Assert.False(Partition(hung).Metrics.IsStalled);
        Assert.NotEqual(hung, _cluster.LeaderOf());
        _cluster.Tick(30 * ElectionTicks);
        Assert.Equal(hung, _cluster.LeaderOf());
    }

    [Fact]
    public void Node_whose_disk_hangs_neither_campaigns_nor_makes_others_count_on_its_vote()
    {
        NodeId leader = _cluster.LeaderOf();
        NodeId hung = _cluster.Ids.Last();
        NodeId other = _cluster.Ids.Single(id => id != leader && id != hung);
        _cluster.Hung.Add(hung);
        Write(leader);
        _cluster.Tick(2 * ElectionTicks);
        ulong term = Partition(leader).Core.Term.Value;
        _cluster.Crash(leader);
        _cluster.Tick(20 * ElectionTicks);
        Assert.Equal(term, Partition(hung).Core.Term.Value);
        Assert.Equal(term, Partition(other).Core.Term.Value);
        _cluster.Hung.Remove(hung);
        _cluster.Elect();
    }

    [Fact]
    public void Leadership_is_not_handed_to_a_node_whose_disk_hangs()
    {
        NodeId leader = _cluster.LeaderOf();
        NodeId hung = _cluster.Ids.Last();
        _cluster.Hung.Add(hung);
        Write(leader);
        _cluster.Tick(2 * ElectionTicks);
        Assert.False(Partition(leader).Core.CanTransfer(hung));
        _cluster[leader.Value].Loops!.Loops[0].PostDrain();
        _cluster.Tick(2);
        Assert.Equal(_cluster.Ids.Single(id => id != leader && id != hung), _cluster.LeaderOf());
    }

    [Fact]
    public void Slow_disk_that_moves_is_no_reason_to_hand_over()
    {
        NodeId leader = _cluster.LeaderOf();
        for (int i = 0; i < 20; i++)
        {
            _cluster.Hung.Add(leader);
            Write(leader);
            _cluster.Tick(ElectionTicks - 2);
            _cluster.Hung.Remove(leader);
            _cluster.Tick();
            Assert.Equal(leader, _cluster.LeaderOf());
        }
    }

    [Fact]
    public void Leader_whose_oldest_batch_waits_too_long_hands_over_although_batches_are_finished()
    {
        // Two batches are under way at all times, and every 14 ticks one of them is finished.
        NodeId slow = _cluster.LeaderOf();
        _cluster[slow.Value].Log.Behind = 1;
        _cluster.Hung.Add(slow);
        Write(slow);
        int syncs = _cluster[slow.Value].Log.Syncs;
        for (int i = 0; i < 6; i++)
        {
            Write(slow);
            _cluster.Tick(ElectionTicks - 3);
            _cluster.Hung.Remove(slow);
            _cluster.Tick();
            _cluster.Hung.Add(slow);
        }

        Assert.InRange(_cluster[slow.Value].Log.Syncs - syncs, 1, 6);
        Assert.NotEqual(slow, _cluster.LeaderOf());
        Assert.False(_cluster.LeaderOf().IsNone);

        // It is told once: the disk is slow all the time.
        Assert.Single(_cluster[slow.Value].Lines, static line =>
            line.Contains("has not finished a write", StringComparison.Ordinal));
        Assert.True(Partition(slow).Metrics.IsStalled);
        _cluster[slow.Value].Log.Behind = 0;
        _cluster.Hung.Clear();
        _cluster.Tick(2);
        Assert.False(Partition(slow).Metrics.IsStalled);
    }

    [Fact]
    public void Who_is_answered_during_a_handover_is_sent_to_the_next_leader()
    {
        NodeId leader = _cluster.LeaderOf();
        NodeId next = _cluster.Ids.Last();
        _cluster.Cut.Add(next);
        Write(leader);
        Assert.True(Partition(leader).Core.TryTransfer(next));
        ModelSink sink = _cluster.Send(leader, CommandKind.Set, "k", 0);
        _cluster.Settle();
        Assert.Equal((OutcomeStatus.NotLeader, (long)next.Value), (sink.Replies[0].Status, sink.Replies[0].Number));
    }

    private Group Partition(NodeId node) => _cluster[node.Value].Loops!.Group(0);

    private OutcomeStatus? Write(NodeId node)
    {
        ModelSink sink = _cluster.Send(node, CommandKind.Set, "k", 0);
        _cluster.Settle();
        return sink.Replies.TryGetValue(0, out var reply) ? reply.Status : null;
    }
}
