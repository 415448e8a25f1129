using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Snapshots;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions;

/// <summary>
/// A follower that is being restored finds the log behind the state that it got, and one that is too slow for that does
/// not fill the log.
/// </summary>
public sealed class HeldLogTests
{
    private int _written;

    [Fact]
    public void Follower_that_takes_entries_slowly_is_restored_once()
    {
        (ModelCluster cluster, NodeId away) = Behind(logLimitBytes: 1L << 30);
        bool isSlow = true;
        cluster.Loses = (_, to, frame) => isSlow && to == away && HasEntries(frame);
        cluster.Start(away);
        cluster.Tick(100);
        Assert.Equal(1, Restored(cluster, away));

        // Several times what the log keeps in any case.
        Write(cluster, 3_000);
        isSlow = false;
        cluster.Tick(200);
        Assert.Equal(1, Restored(cluster, away));
        Assert.Single(cluster.Ids.Select(id => cluster[id.Value].Loops!.Group(0).Applied).Distinct());

        // Nothing is kept for it any more.
        Write(cluster, 1_500);
        cluster.Tick(40);
        NodeId leader = cluster.LeaderOf();
        Assert.InRange(
            cluster[leader.Value].Storage!.Log!.Bytes, 1, ModelStorage.KeepBytes + (6 * ModelStorage.SegmentBytes));
    }

    [Fact]
    public void Slow_follower_is_let_go_before_writes_are_refused()
    {
        (ModelCluster cluster, NodeId away) = Behind(logLimitBytes: 24 * ModelStorage.SegmentBytes);
        bool isSlow = true;
        cluster.Loses = (_, to, frame) => isSlow && to == away && HasEntries(frame);
        cluster.Start(away);
        Write(cluster, 8_000);
        Assert.Contains(cluster.Ids.SelectMany(id => cluster[id.Value].Lines), line =>
            line.Contains("no more is kept for it", StringComparison.Ordinal));
        isSlow = false;
        cluster.Tick(400);
        Assert.Single(cluster.Ids.Select(id => cluster[id.Value].Loops!.Group(0).Applied).Distinct());
    }

    [Fact]
    public void Follower_says_while_it_loads_a_large_state()
    {
        ModelCluster cluster = new(3, storage: true);
        cluster.Elect();
        cluster.Tick(60);
        NodeId leader = cluster.Elect();
        NodeId away = cluster.Ids.First(id => id != leader);
        Write(cluster, 300);
        cluster.Tick(40);
        cluster.Crash(away);
        for (int i = 0; i < 6; i++)
        {
            cluster.Send(
                leader,
                [.. Enumerable.Range(i * 1_000, 1_000).Select(static key => (CommandKind.Set, $"many{key}", ""))]);
            cluster.Settle();
        }

        cluster.Tick(60);
        int said = 0;
        cluster.Loses = (from, _, frame) =>
        {
            said += from == away
                && SnapshotFrame.Is(frame)
                && frame[4] == SnapshotFrame.AnswerKind
                && (SnapshotFrame.ReadHeader(frame).Flags & SnapshotFrame.LoadingFlag) != 0
                ? 1
                : 0;
            return false;
        };
        cluster.Start(away);
        cluster.Tick(100);
        Assert.Equal(1, Restored(cluster, away));

        // Once that it has all of it, and again while it loads.
        Assert.InRange(said, 2, 100);
    }

    [Fact]
    public void Follower_that_loads_a_state_says_so_also_to_senders_of_other_states()
    {
        ModelCluster cluster = new(3, partitions: 2, storage: true);
        cluster.Elect();
        cluster.Tick(60);
        NodeId leader = cluster.Elect();
        Assert.Equal(leader, cluster.LeaderOf(1));
        NodeId away = cluster.Ids.First(id => id != leader);

        // It has a stored state of both, so that neither is loaded as it comes.
        Fill(1);
        cluster.Tick(60);
        cluster.Crash(away);
        Fill(8);
        cluster.Tick(60);
        void Fill(int thousands)
        {
            foreach (string bucket in new[] { BucketOf(0), BucketOf(1) })
            {
                for (int i = 0; i < thousands; i++)
                {
                    cluster.Send(
                        leader,
                        [
                            .. Enumerable.Range(i * 1_000, 1_000)
                                .Select(key => (CommandKind.Set, $"{bucket}/{key}", "")),
                        ]);
                    cluster.Settle();
                }
            }
        }

        GroupId slow = new(2);
        bool isSlow = true;
        int said = 0;
        cluster.Loses = (from, to, frame) =>
        {
            if (!SnapshotFrame.Is(frame) || SnapshotFrame.ReadHeader(frame) is var header && header.Group != slow)
            {
                return false;
            }

            said += isSlow && from == away && (header.Flags & SnapshotFrame.LoadingFlag) != 0 ? 1 : 0;
            return isSlow && to == away && header.Chunk > 0;
        };
        cluster.Start(away);
        cluster.Tick(100);
        Assert.True(
            Restored(cluster, away) == 1,
            string.Join("\n", cluster[leader.Value].Lines.Concat(cluster[away.Value].Lines)));

        // Of the other state one chunk has arrived.
        Assert.InRange(said, 1, 100);
        isSlow = false;
        cluster.Tick(100);
        Assert.Equal(2, Restored(cluster, away));
    }

    /// <summary>A bucket in the partition, of two.</summary>
    private static string BucketOf(int partition) =>
        Enumerable.Range(0, 100)
            .Select(static i => $"{i}")
            .First(bucket => InitialPartition.Of(System.Text.Encoding.UTF8.GetBytes(bucket + "/"), 2) == partition);

    /// <summary>A cluster one of whose nodes is down and behind the log of the others.</summary>
    private (ModelCluster Cluster, NodeId Away) Behind(long logLimitBytes)
    {
        ModelCluster cluster = new(3, storage: true, logLimitBytes: logLimitBytes);
        cluster.Elect();
        cluster.Tick(60);
        NodeId leader = cluster.Elect();
        NodeId away = cluster.Ids.First(id => id != leader);
        cluster.Crash(away);
        Write(cluster, 3_000);
        cluster.Tick(40);
        return (cluster, away);
    }

    private static int Restored(ModelCluster cluster, NodeId node) =>
        cluster[node.Value].Lines.Count(static line => line.Contains("is installed", StringComparison.Ordinal));

    private static bool HasEntries(ReadOnlySpan<byte> frame)
    {
        while (!SnapshotFrame.Is(frame) && PeerFrame.TryRead(ref frame, out _, out RaftMessage message, out _))
        {
            if (message is { Kind: RaftMessageKind.Append, EntryCount: > 0 })
            {
                return true;
            }
        }

        return false;
    }

    private void Write(ModelCluster cluster, int count)
    {
        for (int i = 0; i < count; i++)
        {
            ModelSink sink = cluster.Send(
                cluster.Elect(),
                (
                    CommandKind.Set,
                    $"key-{_written % 300}",
                    $"value {_written++} with some length, so that little writing fills segments"));
            cluster.Settle();
            if (i % 50 == 0)
            {
                cluster.Tick();
            }

            Assert.Equal(OutcomeStatus.Applied, sink.Replies[0].Status);
        }
    }
}
