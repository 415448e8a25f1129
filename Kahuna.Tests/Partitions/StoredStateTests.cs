using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Loops;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Tests.Storage;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions;

/// <summary>
/// Storing states, cutting the log, restarting and restoring from snapshots: shipped loops, log, store and state thread
/// over a model disk and network.
/// </summary>
public sealed class StoredStateTests
{
    private readonly Dictionary<string, string> _acknowledged = [];
    private int _written;

    [Fact]
    public void Log_is_cut_behind_the_stored_state_and_stays_small()
    {
        ModelCluster cluster = new(3, storage: true);
        NodeId leader = Settled(cluster);
        Write(cluster, 3_000);
        cluster.Tick(40);
        foreach (NodeId id in cluster.Ids)
        {
            Assert.True(
                Figures(cluster, id).LogStart.Value > 1_000,
                $"node {id} has its log from entry {Figures(cluster, id).LogStart} on");
            long log =
                cluster[id.Value].Storage!.Disk.Files.Where(file => file.EndsWith(".seg", StringComparison.Ordinal))
                    .Count() * ModelStorage.SegmentBytes;
            Assert.InRange(log, 1, ModelStorage.KeepBytes + (6 * ModelStorage.SegmentBytes));
        }

        AssertSameState(cluster);
    }

    [Fact]
    public void Restart_comes_from_the_stored_state_and_the_log_behind_it()
    {
        ModelCluster cluster = new(3, storage: true);
        Write(cluster, 2_000);
        foreach (NodeId id in cluster.Ids)
        {
            cluster.Crash(id);
        }

        foreach (NodeId id in cluster.Ids)
        {
            cluster.Start(id);
            Assert.Contains(
                cluster[id.Value].Lines, line => line.Contains("keys loaded, up to entry", StringComparison.Ordinal));
        }

        cluster.Elect();
        cluster.Tick(40);
        AssertSameState(cluster);
        AssertAllThere(cluster);
    }

    [Fact]
    public void Follower_that_was_away_too_long_gets_the_state_and_then_entries()
    {
        ModelCluster cluster = new(3, storage: true);
        NodeId leader = Settled(cluster);
        NodeId away = cluster.Ids.First(id => id != leader);
        Write(cluster, 200);
        cluster.Crash(away);
        Write(cluster, 3_000);
        cluster.Tick(40);
        cluster.Start(away);
        cluster.Tick(60);
        Assert.Contains(cluster[away.Value].Lines, line => line.Contains("is installed", StringComparison.Ordinal));
        AssertSameState(cluster);

        // It goes on with what it got after one more crash, and takes part again.
        cluster.Crash(away);
        cluster.Start(away);
        Write(cluster, 50);
        cluster.Tick(40);
        AssertSameState(cluster);
        AssertAllThere(cluster);
    }

    [Theory]
    [InlineData(0.1)]
    [InlineData(0.4)]
    public void Snapshot_gets_through_a_network_that_loses(double loss)
    {
        Random random = new(11);
        ModelCluster cluster = new(3, storage: true);
        NodeId leader = Settled(cluster);
        NodeId away = cluster.Ids.First(id => id != leader);
        cluster.Crash(away);
        Write(cluster, 3_000);
        cluster.Tick(40);
        cluster.Start(away);
        int lost = 0;
        cluster.Loses = (_, _, frame) => SnapshotFrame.Is(frame) && random.NextDouble() < loss && ++lost > 0;
        cluster.Tick(1_500);
        Assert.True(lost > 0);
        AssertSameState(cluster);
    }

    [Fact]
    public void Crash_during_a_snapshot_leaves_the_old_state_or_the_new_one()
    {
        for (int round = 0; round < 40; round++)
        {
            Random random = new(round);
            ModelCluster cluster = new(3, storage: true);
            NodeId leader = Settled(cluster);
            NodeId away = cluster.Ids.First(id => id != leader);
            Write(cluster, 300);
            cluster.Crash(away);
            Write(cluster, 1_500);
            cluster.Tick(20);
            cluster.Start(away);
            int left = random.Next(120);
            cluster[away.Value].Storage!.Disk.Fault = (_, _) => left-- <= 0
                ? throw new OperationCanceledException()
                : 0;
            try
            {
                cluster.Tick(30);
            }
            catch (OperationCanceledException)
            {
                // The follower's power fails within one of its disk operations.
            }

            cluster[away.Value].Storage!.Disk.Fault = null;
            cluster.Crash(away);
            cluster.Start(away);
            cluster.Tick(60);
            AssertSameState(cluster);
            Assert.DoesNotContain(
                cluster[away.Value].Storage!.Disk.Files, file => file.Contains(".new", StringComparison.Ordinal));
        }
    }

    [Fact]
    public void Leader_that_ends_during_a_snapshot_is_followed_by_another_one()
    {
        ModelCluster cluster = new(3, storage: true);
        NodeId leader = Settled(cluster);
        NodeId away = cluster.Ids.First(id => id != leader);
        cluster.Crash(away);
        Write(cluster, 3_000);
        cluster.Tick(40);
        cluster.Start(away);
        int chunks = 0;
        cluster.Loses = (_, to, frame) => to == away && SnapshotFrame.Is(frame) && ++chunks > 5;
        cluster.Tick(10);
        Assert.True(chunks > 5);
        cluster.Loses = null;
        cluster.Crash(leader);
        cluster.Tick(100);
        cluster.Start(leader);
        cluster.Tick(100);
        AssertSameState(cluster);
        AssertAllThere(cluster);
    }

    [Fact]
    public void Wiped_node_that_is_rebuilt_is_restored_before_it_may_vote()
    {
        ModelCluster cluster = new(3, storage: true);
        NodeId leader = Settled(cluster);
        NodeId wiped = cluster.Ids.First(id => id != leader);
        Write(cluster, 2_000);
        cluster.Crash(wiped);
        cluster[wiped.Value].Storage!.Wipe();
        foreach (NodeId id in cluster.Ids.Where(id => id != wiped))
        {
            foreach (PartitionLoop loop in cluster[id.Value].Loops!.Loops)
            {
                loop.PostMemberReplaced(wiped);
            }
        }

        cluster.Start(wiped, VotingRight.Rejoining);
        Group partition = cluster[wiped.Value].Loops!.Group(0);
        Assert.False(partition.CanRejoin);
        cluster.Tick(100);
        Assert.True(
            partition.CanRejoin,
            string.Join(
                '\n',
                cluster[wiped.Value].Lines
                    .Concat(cluster[leader.Value].Lines)
                    .Append($"{partition.Status} {partition.Metrics} {partition.CommitIndex}")
                    .Append(
                        $"{cluster[leader.Value].Loops!.Group(0).Status} "
                            + $"{cluster[leader.Value].Loops!.Group(0).Metrics}")));
        Assert.False(partition.Metrics.MayVote);
        AssertSameState(cluster);
        foreach (PartitionLoop loop in cluster[wiped.Value].Loops!.Loops)
        {
            loop.PostAllowVoting();
        }

        // Now it can be the majority's other half.
        cluster.Tick(5);
        cluster.Crash(leader);
        Write(cluster, 10);
        AssertAllThere(cluster);
    }

    [Fact]
    public void Full_disk_stops_storing_and_nothing_else_until_there_is_room()
    {
        ModelCluster cluster = new(1, storage: true);
        NodeId leader = Settled(cluster);
        ModelStorage storage = cluster[1].Storage!;
        storage.Disk.Fault = (step, path) => step == DiskStep.Write
            && path.Contains("/state/", StringComparison.Ordinal)
            ? Server.Storage.Disk.DiskException.NoSpaceLeft
            : 0;
        Write(cluster, 2_000);
        cluster.Tick(40);
        Assert.Contains(cluster[1].Lines, line => line.Contains("is not stored", StringComparison.Ordinal));
        Assert.Equal(0UL, Figures(cluster, leader).Stored.Value);
        storage.Disk.Fault = null;
        cluster.Tick(200);
        Assert.True(Figures(cluster, leader).Stored.Value > 1_000);
        cluster.Crash(leader);
        cluster.Start(leader);
        cluster.Elect();
        AssertAllThere(cluster);
    }

    [Fact]
    public void Failed_store_ends_the_node()
    {
        ModelCluster cluster = new(1, storage: true);
        NodeId leader = Settled(cluster);
        cluster[1].Storage!.Disk.Fault = (step, path) => step == DiskStep.Write
            && path.Contains("/state/", StringComparison.Ordinal)
            ? Server.Storage.Disk.DiskException.InputOutputError
            : 0;
        Write(cluster, 2_000);
        cluster.Tick(40);
        Assert.Contains("/state/", Assert.Single(cluster[1].Failures).Message, StringComparison.Ordinal);
    }

    /// <summary>The leader, after leadership has gone to where it belongs.</summary>
    private static NodeId Settled(ModelCluster cluster)
    {
        cluster.Elect();
        cluster.Tick(60);
        return cluster.Elect();
    }

    private static PartitionMetrics Figures(ModelCluster cluster, NodeId id) =>
        cluster[id.Value].Loops!.Group(0).Metrics;

    private void Write(ModelCluster cluster, int count)
    {
        for (int i = 0; i < count; i++)
        {
            string key = $"key-{_written % 300}";
            string value = $"value {_written++} with some length, so that little writing fills segments";
            ModelSink sink = cluster.Send(cluster.Elect(), (CommandKind.Set, key, value));
            cluster.Settle();
            if (i % 50 == 0)
            {
                cluster.Tick();
            }

            Assert.Equal(OutcomeStatus.Applied, sink.Replies[0].Status);
            _acknowledged[key] = value;
        }
    }

    private static void AssertSameState(ModelCluster cluster)
    {
        foreach (NodeId id in cluster.Ids)
        {
            Assert.Empty(cluster[id.Value].Failures);
            Group partition = cluster[id.Value].Loops!.Group(0);
            Assert.Equal(partition.State.RecomputeDigest(), partition.State.Digest);
        }

        Assert.Single(
            cluster.Ids.Select(id =>
                (cluster[id.Value].Loops!.Group(0).Metrics.Applied, cluster[id.Value].Loops!.Group(0).State.Digest))
                .Distinct());
    }

    private void AssertAllThere(ModelCluster cluster)
    {
        NodeId leader = cluster.Elect();
        foreach ((string key, string value) in _acknowledged)
        {
            ModelSink sink = cluster.Send(leader, (CommandKind.Get, key, ""));
            cluster.Settle();
            Assert.Equal(value, sink.Replies[0].Value);
        }
    }
}
