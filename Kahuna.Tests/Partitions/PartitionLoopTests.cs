using System.Text;
using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Tests.State.Locks;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions;

public sealed class PartitionLoopTests
{
    [Fact]
    public void WritesAndReadsThroughThreeNodes()
    {
        ModelCluster cluster = new(3);
        NodeId leader = cluster.Elect();
        ModelSink writes = cluster.Send(
            leader, (CommandKind.Set, "a", "1"), (CommandKind.Set, "b", "2"), (CommandKind.Set, "a", "3"));
        cluster.Settle();
        Assert.Equal([1L, 1L, 2L], writes.Replies.OrderBy(r => r.Key).Select(r => r.Value.Revision));
        ModelSink reads = cluster.Send(leader, (CommandKind.Get, "a", ""), (CommandKind.Get, "missing", ""));
        cluster.Settle();
        Assert.Equal("3", reads.Replies[0].Value);
        Assert.Equal(OutcomeStatus.NotFound, reads.Replies[1].Status);
        cluster.Tick(4);
        Assert.Single(cluster.Ids.Select(id => cluster[id.Value].Loops!.Group(0).State.Digest).Distinct());
    }

    [Fact]
    public void NothingIsAcknowledgedBeforeAMajorityHasSynced()
    {
        ModelCluster cluster = new(3);
        NodeId leader = cluster.Elect();
        ModelSink sink = cluster.Send(leader, (CommandKind.Set, "a", "1"));
        cluster.Settle(sync: false);
        Assert.Empty(sink.Replies);
        cluster[leader.Value].Log.Sync();
        cluster.Settle(sync: false);
        Assert.Empty(sink.Replies);
        cluster[cluster.Ids.First(id => id != leader).Value].Log.Sync();
        cluster.Settle(sync: false);
        Assert.Equal(OutcomeStatus.Applied, sink.Replies[0].Status);
    }

    [Theory]
    [InlineData(500, 500, true)]
    [InlineData(500, 501, false)]
    [InlineData(0, 300_000, true)]
    [InlineData(0, 300_001, false)]
    [InlineData(uint.MaxValue, 300_001, false)]
    public void WhatWaitedLongerThanItMayIsDroppedAndSaysSo(uint waitMs, int waitedMs, bool isTaken)
    {
        // One node: nobody else is elected meanwhile.
        ModelCluster cluster = new(1, configure: static options => options with { PauseMs = int.MaxValue });
        NodeId leader = cluster.Elect();
        ModelSink write = cluster.Send(leader, LockCommands.Acquire("l", "ann"), waitMs);
        ModelSink read = cluster.Send(leader, LockCommands.Observe("l", 0, 0), waitMs);
        cluster.Pass(waitedMs);
        cluster.Settle();
        Assert.Equal(isTaken ? OutcomeStatus.Applied : OutcomeStatus.Expired, write.Replies[0].Status);
        Assert.Equal(isTaken ? OutcomeStatus.NotFound : OutcomeStatus.Expired, read.Replies[0].Status);
        Assert.Equal(isTaken ? 1 : 0, cluster[1].Loops!.Group(0).State.Locks.Metrics.Held);
    }

    [Fact]
    public void AFollowerNamesTheLeader()
    {
        ModelCluster cluster = new(3);
        NodeId leader = cluster.Elect();
        ModelSink sink = cluster.Send(
            cluster.Ids.First(id => id != leader), (CommandKind.Set, "a", "1"), (CommandKind.Get, "a", ""));
        cluster.Settle();
        Assert.All(sink.Replies.Values, reply =>
            Assert.Equal((OutcomeStatus.NotLeader, (long)leader.Value), (reply.Status, reply.Number)));
    }

    [Fact]
    public void AWriteThatAnotherLeaderReplacedDidNotHappenAndSaysSo()
    {
        ModelCluster cluster = new(3);
        NodeId old = cluster.Elect();
        cluster.Cut.Add(old);
        ModelSink lost = cluster.Send(old, (CommandKind.Set, "a", "lost"));
        cluster.Settle();
        NodeId next = cluster.Elect();
        Assert.NotEqual(old, next);
        ModelSink won = cluster.Send(next, (CommandKind.Set, "a", "won"));
        cluster.Settle();
        Assert.Equal(OutcomeStatus.Applied, won.Replies[0].Status);
        Assert.Empty(lost.Replies);
        cluster.Cut.Clear();
        cluster.Tick(10);
        Assert.Equal(OutcomeStatus.NotLeader, lost.Replies[0].Status);
    }

    [Fact]
    public void AWriteThatTheNextLeaderCommitsIsAcknowledgedByTheOldOne()
    {
        ModelCluster cluster = new(3);
        NodeId old = cluster.Elect();
        ModelSink sink = cluster.Send(old, (CommandKind.Set, "a", "1"));
        cluster.Settle(sync: false);
        foreach (NodeId id in cluster.Ids.Where(id => id != old))
        {
            cluster[id.Value].Log.Sync();
        }

        // The followers have synced, but their acknowledgements are cut off.
        cluster.Cut.Add(old);
        cluster.Settle();
        Assert.Empty(sink.Replies);
        cluster.Elect();
        cluster.Cut.Clear();
        cluster.Tick(20);
        Assert.Equal(OutcomeStatus.Applied, sink.Replies[0].Status);
    }

    [Fact]
    public void EverythingAcknowledgedIsThereAfterAllNodesCrash()
    {
        ModelCluster cluster = new(3, partitions: 3);
        cluster.Elect();
        cluster.Tick(60);
        for (int i = 0; i < 50; i++)
        {
            ModelSink sink = cluster.Send(LeaderFor(cluster, $"b{i}/k"), (CommandKind.Set, $"b{i}/k", $"{i}"));
            cluster.Settle();
            Assert.Equal(OutcomeStatus.Applied, sink.Replies[0].Status);
        }

        foreach (NodeId id in cluster.Ids)
        {
            cluster.Crash(id);
        }

        foreach (NodeId id in cluster.Ids)
        {
            cluster.Start(id);
        }

        cluster.Elect();
        for (int i = 0; i < 50; i++)
        {
            ModelSink sink = cluster.Send(LeaderFor(cluster, $"b{i}/k"), (CommandKind.Get, $"b{i}/k", ""));
            cluster.Settle();
            Assert.Equal($"{i}", sink.Replies[0].Value);
        }
    }

    [Fact]
    public void ProposalsWaitWhileTheLogIsBehindAndGoTogether()
    {
        ModelCluster cluster = new(1);
        NodeId leader = cluster.Elect();
        int syncs = cluster[1].Log.Syncs;
        List<ModelSink> sinks = [];
        for (int i = 0; i < 20; i++)
        {
            sinks.Add(cluster.Send(leader, (CommandKind.Set, $"k{i}", "v")));
            cluster.Settle(sync: false);
        }

        Assert.Equal(2, cluster[1].Log.Pending);
        cluster.Settle();
        Assert.All(sinks, sink => Assert.Equal(OutcomeStatus.Applied, sink.Replies[0].Status));
        Assert.True(cluster[1].Log.Syncs - syncs <= 3);
    }

    [Fact]
    public void AFullLogRefusesWritesAndServesReads()
    {
        ModelCluster cluster = new(3);
        NodeId leader = cluster.Elect();
        cluster[leader.Value].Log.RefuseWrites = "the log is full";
        ModelSink sink = cluster.Send(leader, (CommandKind.Set, "a", "1"), (CommandKind.Get, "a", ""));
        cluster.Settle();
        Assert.Equal((OutcomeStatus.LogFull, "the log is full"), (sink.Replies[0].Status, sink.Replies[0].Value));
        Assert.Equal(OutcomeStatus.NotFound, sink.Replies[1].Status);
    }

    [Fact]
    public void AClosedLoopSendsCallersToAnotherNode()
    {
        ModelCluster cluster = new(3);
        NodeId leader = cluster.Elect();
        cluster[leader.Value].Loops!.Loops[0].PostClose();
        cluster.Settle();
        ModelSink sink = cluster.Send(leader, (CommandKind.Set, "a", "1"));
        cluster.Settle();
        Assert.Equal(OutcomeStatus.Unavailable, sink.Replies[0].Status);
    }

    [Fact]
    public void AFullInboxRefusesAtTheDoor()
    {
        ModelCluster cluster = new(3, configure: options => options with { ClientInboxBytesMax = 100 });
        NodeId leader = cluster.Elect();
        ModelSink first = cluster.Send(leader, (CommandKind.Set, "a", new string('x', 200)));
        ModelSink second = cluster.Send(leader, (CommandKind.Set, "b", "1"), (CommandKind.Get, "b", ""));
        Assert.All(second.Replies.Values, reply => Assert.Equal(OutcomeStatus.Busy, reply.Status));
        Assert.Equal(2, second.Replies.Count);
        cluster.Settle();
        Assert.Equal(OutcomeStatus.Applied, first.Replies[0].Status);
    }

    [Fact]
    public void ReadsOfACutOffLeaderAreNeverAnsweredWithOldValues()
    {
        ModelCluster cluster = new(3);
        NodeId old = cluster.Elect();
        cluster.Cut.Add(old);
        ModelSink stale = cluster.Send(old, (CommandKind.Get, "a", ""));
        cluster.Settle();
        Assert.Empty(stale.Replies);
        cluster.Tick(80);
        Assert.Equal(OutcomeStatus.NotLeader, stale.Replies[0].Status);
    }

    [Fact]
    public void LeadershipReturnsToThePreferredNode()
    {
        ModelCluster cluster = new(3);
        cluster.Elect();
        cluster.Tick(100);
        Assert.Equal(new NodeId(1), cluster.LeaderOf());
        cluster.Crash(new NodeId(1));
        Assert.NotEqual(new NodeId(1), cluster.Elect());
        cluster.Start(new NodeId(1));
        cluster.Tick(150);
        Assert.Equal(new NodeId(1), cluster.LeaderOf());
    }

    [Fact]
    public void ADrainingLeaderHandsOverAndRefusesNewWork()
    {
        ModelCluster cluster = new(3);
        cluster.Elect();
        cluster.Tick(100);
        cluster[1].Loops!.Loops[0].PostDrain();
        cluster.Settle();
        ModelSink refused = cluster.Send(new NodeId(1), (CommandKind.Set, "a", "1"));
        cluster.Settle();
        Assert.Equal(OutcomeStatus.Unavailable, refused.Replies[0].Status);
        cluster.Tick(5);
        Assert.NotEqual(new NodeId(1), cluster.LeaderOf());
        Assert.False(cluster.LeaderOf().IsNone);
    }

    [Fact]
    public void ABrokenRuleStopsOnePartitionAndNoOther()
    {
        ModelCluster cluster = new(3, partitions: 3);
        cluster.Elect();
        cluster.Tick(100);
        ModelCluster.ModelNode node = cluster[1];
        Group broken = node.Loops!.Group(InitialPartition.Of("a"u8, 3));
        Group other = node.Loops.Group((broken.Index + 1) % 3);
        Assert.True(broken.IsLeader && other.IsLeader);

        // A second leader of the same term is what must never be.
        RaftMessage second = new()
        {
            Kind = RaftMessageKind.Append,
            From = new NodeId(2),
            To = new NodeId(1),
            Term = broken.Status.Term,
        };
        node.Loops.Loops[broken.Index % node.Loops.Loops.Length].Intake.StepOwn(broken, second);
        Assert.Contains("one leader per term", Assert.Single(node.Failures).Message, StringComparison.Ordinal);
        Assert.True(broken.Failed);
        ModelSink refused = cluster.Send(new NodeId(1), (CommandKind.Set, "a", "1"));
        cluster.Settle();
        Assert.Equal(OutcomeStatus.Internal, refused.Replies[0].Status);
        cluster.Tick(20);
        Assert.True(other.IsLeader && !other.Failed);
    }

    [Fact]
    public void WritesBehindTheEndOfTheNextLeadersLogDidNotHappenAndSaySo()
    {
        ModelCluster cluster = new(3);
        NodeId old = cluster.Elect();
        cluster.Cut.Add(old);
        ModelSink[] lost = new ModelSink[5];
        for (int i = 0; i < lost.Length; i++)
        {
            lost[i] = cluster.Send(old, (CommandKind.Set, "a", "lost"));
            cluster.Settle();
        }

        // The next leader has one entry in their places, and nothing is written through it.
        Assert.NotEqual(old, cluster.Elect());
        Assert.All(lost, static sink => Assert.Empty(sink.Replies));
        cluster.Cut.Clear();
        cluster.Tick(10);
        Assert.All(lost, static sink => Assert.Equal(OutcomeStatus.NotLeader, sink.Replies[0].Status));
    }

    private static NodeId LeaderFor(ModelCluster cluster, string key) =>
        cluster.LeaderOf(InitialPartition.Of(Encoding.UTF8.GetBytes(key), 3));
}
