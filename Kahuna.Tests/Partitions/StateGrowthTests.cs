using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State;
using Kahuna.Server.State.Rows;
using Kahuna.Tests.Storage;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions;

/// <summary>
/// How much a partition takes in, how fast it gives back what has expired, and what becomes of one that cannot be
/// loaded.
/// </summary>
public sealed class StateGrowthTests
{
    private static readonly string s_large = new('x', 200_000);

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void Keys_are_removed_at_the_rate_at_which_they_fall_due(bool isBusy)
    {
        const int PerTick = 1_000;
        const int LifetimeMs = 200;

        // Busy: a quarter of what may be uncommitted waits at each tick, because the disk is always one batch behind.
        ModelCluster cluster = new(1, configure: options => options with
        {
            UncommittedBytesMax = isBusy ? 700_000 : options.UncommittedBytesMax,
        });
        NodeId leader = cluster.Elect();
        cluster[leader.Value].Log.Behind = isBusy ? 1 : 0;
        StateMachine state = cluster[leader.Value].Loops!.Group(0).State;
        int written = 0;
        for (int tick = 0; tick < 80; tick++)
        {
            for (int i = 0; i < PerTick; i++)
            {
                cluster.Send(leader, CommandKind.Set, $"key/{written++}/{new string('x', 200)}", LifetimeMs);
            }

            cluster.Tick();
            Assert.InRange(state.Counts.Keys, tick < 10 ? 0 : PerTick * 3, PerTick * ((LifetimeMs / 50) + 4));
        }

        cluster[leader.Value].Log.Behind = 0;
        cluster.Tick(10);
        Assert.Equal(0, state.Counts.Keys);
    }

    /// <summary>
    /// 10,000 new names a second that live for a minute. What a state has depends on what lives, and on its history:
    /// both have as much as they ever will after a minute and the time in which the history is filled and passes. So
    /// one more minute in which nothing grows, not even slabs, stands for the rest of an hour, in which every second is
    /// the same.
    /// </summary>
    [Fact]
    public void Ten_thousand_new_names_a_second_that_live_for_a_minute_stay_within_a_bound()
    {
        const int PerTick = 500;
        const int LifetimeTicks = 1_200;
        StateLimits limits = new();
        ModelCluster cluster = new(
            1, configure: options => options with { StateLimits = limits, FlushLogBytes = long.MaxValue });
        NodeId leader = cluster.Elect();
        StateMachine state = cluster[leader.Value].Loops!.Group(0).State;
        long history = limits.HistoryBytes / (HistoryTable.RecordOverheadBytes + 16);
        int steadyAt = LifetimeTicks + (int)(history / PerTick) + 20;
        (long Rows, long Bytes) steady = default;
        byte[] name = new byte[16];
        Command set =
            new()
            {
                Kind = CommandKind.Set,
                Durability = Durability.Persistent,
                Flags = CommandFlags.Ttl,
                TtlMs = 60_000,
            };
        (uint, byte[])[] batch = new (uint, byte[])[PerTick];
        ByteBuffer buffer = ByteBuffer.Rent();
        for (int tick = 0; tick < steadyAt + LifetimeTicks; tick++)
        {
            for (int i = 0; i < PerTick; i++)
            {
                Assert.True(((tick * PerTick) + i).TryFormat(name, out int _, "D16"));
                set.Key = name;
                buffer.Length = 0;
                set.Write(buffer);
                batch[i] = ((uint)i, buffer.Written.ToArray());
            }

            cluster.Send(leader, new ModelSink(), batch);
            cluster.Tick();
            long rows = state.Counts.Keys + state.Counts.Tombstones;
            Assert.InRange(rows, 0, ((LifetimeTicks + 4) * PerTick) + history);
            if (tick < steadyAt)
            {
                steady = (Math.Max(steady.Rows, rows), Math.Max(steady.Bytes, state.BytesInUse));
                continue;
            }

            Assert.InRange(rows, LifetimeTicks * PerTick, steady.Rows + PerTick);
            Assert.InRange(state.BytesInUse, 0, steady.Bytes + (1 << 20));
        }

        buffer.Return();
    }

    [Fact]
    public void Above_the_memory_that_it_may_take_up_a_leader_refuses_what_takes_more()
    {
        ModelCluster cluster = new(
            1,
            configure: static options => options with { StateLimits = new StateLimits { HistoryPerKey = 0 } },
            persistentBytesMax: 8_000_000);
        NodeId leader = cluster.Elect();
        int written = Fill(cluster, leader);
        Assert.InRange(written, 20, 45);
        Assert.Equal(OutcomeStatus.MemoryFull, Do(cluster, leader, CommandKind.Increment, "counter", ""));
        Assert.Equal(OutcomeStatus.Found, Do(cluster, leader, CommandKind.Get, "key/0", ""));
        cluster.Send(leader, CommandKind.Extend, "key/0", 60_000);
        for (int i = 0; i < 10; i++)
        {
            Assert.Equal(OutcomeStatus.Applied, Do(cluster, leader, CommandKind.Delete, $"key/{i}", ""));
        }

        cluster.Tick();
        Assert.Equal(OutcomeStatus.Applied, Do(cluster, leader, CommandKind.Set, "key/0", s_large));
    }

    [Fact]
    public void A_leader_refuses_new_data_before_slabs_run_out()
    {
        StateLimits limits = new() { HistoryPerKey = 0, SlabsMax = 60, SlabsReserved = 20 };
        ModelCluster cluster = new(3, configure: options => options with { StateLimits = limits });
        cluster.Elect();
        cluster.Tick(100);
        NodeId leader = cluster.LeaderOf();
        int written = Fill(cluster, leader);
        Assert.InRange(written, limits.SlabsMax - limits.SlabsReserved - 5, limits.SlabsMax - 5);
        Assert.Equal(OutcomeStatus.Applied, Do(cluster, leader, CommandKind.Delete, "key/3", ""));
        Assert.Equal(OutcomeStatus.Applied, Do(cluster, leader, CommandKind.Delete, "key/4", ""));
        cluster.Tick(4);
        Assert.Equal(OutcomeStatus.Applied, Do(cluster, leader, CommandKind.Set, "key/3", s_large));
        Assert.All(cluster.Ids, id => Assert.Empty(cluster[id.Value].Failures));
    }

    [Fact]
    public void A_partition_that_cannot_be_loaded_stops_alone()
    {
        ModelCluster cluster = new(3, partitions: 2, configure: static options => options with
        {
            StateLimits = new StateLimits { SlabsReserved = 0 },
        });
        cluster.Elect();
        (string bad, string good) = Keys();
        for (int i = 0; i < 30; i++)
        {
            Assert.Equal(
                OutcomeStatus.Applied, Do(cluster, cluster.LeaderOf(0), CommandKind.Set, $"{bad}{i}", s_large));
        }

        Assert.Equal(OutcomeStatus.Applied, Do(cluster, cluster.LeaderOf(1), CommandKind.Set, good, "x"));
        cluster.Tick(10);

        // What it has applied does not fit any more, on one node.
        NodeId node = cluster.LeaderOf(0);
        cluster.Crash(node);
        cluster.Configure =
            static options => options with { StateLimits = new StateLimits { SlabsMax = 10, SlabsReserved = 0 } };
        cluster.Start(node);
        Assert.IsType<InvariantException>(Assert.Single(cluster[node.Value].Failures));
        Assert.Contains(cluster[node.Value].Loops!.Group(0).Id, cluster[node.Value].Log.Abandoned);
        Assert.DoesNotContain(cluster[node.Value].Loops!.Group(1).Id, cluster[node.Value].Log.Abandoned);
        StoppedAlone(cluster, node, $"{bad}0", good);
    }

    [Theory]
    [InlineData("record", "is damaged at offset")]
    [InlineData("state", "the log begins after entry")]
    public void A_partition_whose_data_cannot_be_used_stops_alone(string damaged, string sentence)
    {
        ModelCluster cluster = new(3, partitions: 2, storage: true);
        cluster.Elect();
        (string bad, string good) = Keys();
        for (int i = 0; i < 40; i++)
        {
            Assert.Equal(
                OutcomeStatus.Applied,
                Do(cluster, cluster.LeaderOf(0), CommandKind.Set, $"{bad}{i}", s_large[..4_000]));
            cluster.Tick();
        }

        Assert.Equal(OutcomeStatus.Applied, Do(cluster, cluster.LeaderOf(1), CommandKind.Set, good, "x"));
        cluster.Tick(40);
        NodeId node = cluster.LeaderOf(0);
        GroupId group = cluster[node.Value].Loops!.Group(0).Id;
        cluster.Crash(node);
        ModelDisk disk = cluster[node.Value].Storage!.Disk;
        string path = $"/data/state/state-{group}.snapshot";
        if (damaged == "record")
        {
            disk.Change(path, bytes => bytes[disk.Content(path).Length / 2] ^= 1);
        }
        else
        {
            disk.Delete(path);
        }

        cluster.Start(node);
        Assert.Contains(
            sentence,
            Assert.IsAssignableFrom<GroupDamagedException>(Assert.Single(cluster[node.Value].Failures)).Message,
            StringComparison.Ordinal);
        Assert.Contains(
            "start this node with --rebuild", cluster[node.Value].Failures[0].Message, StringComparison.Ordinal);
        StoppedAlone(cluster, node, $"{bad}0", good);
    }

    [Fact]
    public void A_partition_that_stopped_and_whose_log_is_gone_stops_alone_at_the_next_start()
    {
        ModelCluster cluster = new(
            1,
            partitions: 2,
            configure: static options =>
                options with { StateLimits = new StateLimits { HistoryPerKey = 0, SlabsMax = 10, SlabsReserved = 0 } },
            storage: true,
            logLimitBytes: 4 << 20);
        NodeId node = cluster.Elect();
        (string bad, string good) = Keys();
        cluster.Send(node, [.. Enumerable.Range(0, 20).Select(i => (CommandKind.Set, $"{bad}{i}", s_large))]);
        cluster.Tick(2);
        Group stopped = cluster[node.Value].Loops!.Group(0);
        Assert.True(stopped.Failed);
        ILogStore log = cluster[node.Value].Storage!.Log!;

        // Until its first segments have gone, and so long again that their files have, too.
        int goneAfter = 0;
        for (int i = 0; i <= 2 * goneAfter || goneAfter == 0; i++)
        {
            Assert.InRange(i, 0, 2_000);
            goneAfter = goneAfter == 0 && log.StartOf(stopped.Id).Value > 0 ? i : goneAfter;
            Assert.Equal(OutcomeStatus.Applied, Do(cluster, node, CommandKind.Set, good, s_large[..100_000]));
            cluster.Tick();
        }

        cluster.Crash(node);
        cluster.Start(node);
        for (int i = 0; i < 400 && cluster.LeaderOf(1).IsNone; i++)
        {
            cluster.Tick();
        }

        Assert.Contains(
            "the log begins after entry",
            Assert.IsAssignableFrom<GroupDamagedException>(Assert.Single(cluster[node.Value].Failures)).Message,
            StringComparison.Ordinal);
        Assert.True(cluster[node.Value].Loops!.Group(0).Failed);
        Assert.Equal(OutcomeStatus.Applied, Do(cluster, node, CommandKind.Set, good, "y"));
        Assert.Equal(OutcomeStatus.Internal, Do(cluster, node, CommandKind.Get, $"{bad}0", ""));
    }

    [Fact]
    public void A_partition_that_breaks_a_rule_is_no_leader_any_more()
    {
        ModelCluster cluster = new(1, configure: static options => options with
        {
            StateLimits = new StateLimits { SlabsMax = 10, SlabsReserved = 0 },
        });
        NodeId node = cluster.Elect();
        ModelSink sink = cluster.Send(
            node, [.. Enumerable.Range(0, 20).Select(i => (CommandKind.Set, $"key/{i}", s_large))]);
        cluster.Tick(2);

        // Whoever waited for a command behind the one that broke the rule is told that its end is not known.
        Assert.Equal(20, sink.Replies.Count);
        Assert.InRange(sink.Replies.Values.Count(reply => reply.Status == OutcomeStatus.Applied), 1, 18);
        Assert.All(sink.Replies.Values, reply =>
            Assert.True(reply.Status is OutcomeStatus.Applied or OutcomeStatus.Internal, reply.Status.ToString()));
        Group stopped = cluster[node.Value].Loops!.Group(0);
        Assert.True(stopped.Failed);
        Assert.False(stopped.IsLeader);
        Assert.Equal(
            (RaftRole.Follower, NodeId.None, false),
            (stopped.Status.Role, stopped.Status.Leader, stopped.Status.Serving));
        Assert.Contains(stopped.Id, cluster[node.Value].Log.Abandoned);
    }

    /// <summary>Writes keys until one is refused; how many were taken.</summary>
    private static int Fill(ModelCluster cluster, NodeId leader)
    {
        for (int written = 0; written < 200; written++)
        {
            OutcomeStatus status = Do(cluster, leader, CommandKind.Set, $"key/{written}", s_large);
            cluster.Tick(2);
            if (status == OutcomeStatus.MemoryFull)
            {
                return written;
            }

            Assert.Equal(OutcomeStatus.Applied, status);
        }

        return int.MaxValue;
    }

    /// <summary>
    /// The node, just started, does not take part in partition 0, which the others lead, and takes part in partition 1.
    /// </summary>
    private static void StoppedAlone(ModelCluster cluster, NodeId node, string bad, string good)
    {
        Group stopped = cluster[node.Value].Loops!.Group(0);
        Assert.True(stopped.Failed);
        cluster.Elect();
        Assert.NotEqual(node, cluster.LeaderOf(0));
        Assert.Equal(
            (RaftRole.Follower, NodeId.None, false),
            (stopped.Status.Role, stopped.Status.Leader, stopped.Status.Serving));
        Assert.Equal(OutcomeStatus.Applied, Do(cluster, cluster.LeaderOf(1), CommandKind.Set, good, "y"));
        cluster.Tick(10);
        Assert.Equal(OutcomeStatus.Internal, Do(cluster, node, CommandKind.Get, bad, ""));
        Assert.Single(cluster.Ids.Select(id => cluster[id.Value].Loops!.Group(1).State.Digest).Distinct());
    }

    /// <summary>A key of partition 0 and one of partition 1.</summary>
    private static (string Bad, string Good) Keys()
    {
        string[] keys = [.. Enumerable.Range(0, 100).Select(i => $"b{i}/k")];
        return (keys.First(key => Partition(key) == 0), keys.First(key => Partition(key) == 1));
    }

    private static OutcomeStatus Do(ModelCluster cluster, NodeId node, CommandKind kind, string key, string value)
    {
        ModelSink sink = cluster.Send(node, (kind, key, value));
        cluster.Settle();
        return sink.Replies[0].Status;
    }

    private static int Partition(string key) => InitialPartition.Of(System.Text.Encoding.UTF8.GetBytes(key), 2);
}
