using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Partitions.Groups;

/// <summary>
/// A cluster of builds that differ in their feature levels: the level rises when all support it, and a build below the
/// level neither takes an entry of it nor starts on one.
/// </summary>
public sealed class FeatureLevelTests
{
    private readonly Dictionary<int, FeatureRange> _features = [];
    private FeatureLevel? _hold;

    [Fact]
    public void The_level_rises_when_the_last_node_supports_it()
    {
        ModelCluster cluster = Cluster(3);
        foreach (NodeId id in cluster.Ids)
        {
            Assert.Equal([1, 1, 1], Levels(cluster));
            Upgrade(cluster, id);
        }

        Assert.Equal([2, 2, 2], Levels(cluster));
        Assert.All(cluster.Ids, id => Assert.Contains("The cluster's feature level is 2.", cluster[id.Value].Lines));
        Assert.All(cluster.Ids, id => Assert.Empty(cluster[id.Value].Failures));
        ModelSink sink = cluster.Send(cluster.Elect(), (CommandKind.Set, "a", "1"));
        cluster.Settle();
        Assert.Equal(OutcomeStatus.Applied, sink.Replies[0].Status);
        cluster.Tick(20);
        Group[] groups = [.. cluster.Ids.Select(id => cluster[id.Value].Loops!.Group(0))];
        Assert.All(
            groups, group => Assert.Equal((2, groups[0].State.Digest), (group.Core.Level.Value, group.State.Digest)));
    }

    [Fact]
    public void The_operator_holds_the_level_and_does_not_lower_it()
    {
        _hold = FeatureLevel.First;
        ModelCluster cluster = Cluster(1);
        Upgrade(cluster, cluster.Ids[0]);
        Assert.Equal([1], Levels(cluster));
        _hold = null;
        Upgrade(cluster, cluster.Ids[0]);
        Assert.Equal([2], Levels(cluster));
        _hold = FeatureLevel.First;
        Upgrade(cluster, cluster.Ids[0]);
        Assert.Equal([2], Levels(cluster));
        Assert.Single(
            cluster[1].Lines,
            static line => line.Contains("--feature-level-max 1 has no effect", StringComparison.Ordinal));
    }

    [Fact]
    public void A_command_above_the_level_is_refused_with_a_sentence()
    {
        ModelCluster cluster = Cluster(1);
        ModelSink sink = cluster.Send(cluster.Elect(), (CommandKind.FeatureProbe, "a", ""));
        cluster.Settle();
        Assert.Equal(OutcomeStatus.Unimplemented, sink.Replies[0].Status);
        Assert.Contains(
            "feature probe needs feature level 2, and the cluster has level 1", sink.Replies[0].Value,
            StringComparison.Ordinal);
        Upgrade(cluster, cluster.Ids[0]);
        sink = cluster.Send(cluster.Elect(), (CommandKind.FeatureProbe, "a", ""));
        cluster.Settle();
        Assert.Equal(OutcomeStatus.Applied, sink.Replies[0].Status);
    }

    [Fact]
    public void A_build_below_the_level_does_not_start_on_its_entries()
    {
        ModelCluster cluster = Cluster(1);
        Upgrade(cluster, cluster.Ids[0]);
        cluster.Send(cluster.Ids[0], (CommandKind.Set, "a", "1"));
        cluster.Settle();
        _features.Clear();
        cluster.Crash(cluster.Ids[0]);
        string message = Assert.Throws<FeatureLevelException>(() => cluster.Start(cluster.Ids[0])).Message;
        Assert.Contains(
            "and this version supports level 1 only. Start this node with", message, StringComparison.Ordinal);
        Assert.Contains("its log", message, StringComparison.Ordinal);
    }

    [Fact]
    public void A_running_build_below_the_level_takes_no_entry_of_it_and_stops()
    {
        ModelCluster cluster = Cluster(3);
        NodeId leader = cluster.Elect();
        NodeId other = cluster.Ids.First(id => id != leader);
        Group group = cluster[other.Value].Loops!.Group(0);
        LogIndex last = group.Core.LastIndex;
        ByteBuffer entries = ByteBuffer.Rent();
        EntryCodec.Write(entries, group.Core.Term, EntryKind.Empty, [], FeatureLevels.Test);
        group.Step(
            new RaftMessage
            {
                Kind = RaftMessageKind.Append,
                From = leader,
                To = other,
                Term = group.Core.Term,
                Index = last,
                LogTerm = group.Core.TermOf(last),
                EntryCount = 1,
            },
            default,
            entries.Written);
        Assert.Equal(last, group.Core.LastIndex);
        Assert.False(group.Failed);
        Assert.Equal(
            $"The cluster has feature level 2 (in an entry of {group.Id.Name} from node {leader}), and this version "
                + "supports level 1 only. Start this node with a version that supports it, as the other nodes run.",
            Assert.IsType<FeatureLevelException>(Assert.Single(cluster[other.Value].Failures)).Message);
    }

    [Fact]
    public void A_node_that_comes_back_with_an_earlier_version_hears_of_the_level_and_stops()
    {
        ModelCluster cluster = Cluster(3);
        NodeId away = cluster.Ids[2];
        foreach (NodeId id in cluster.Ids)
        {
            Upgrade(cluster, id, settles: id != away);
        }

        // It has registered what it supports, and goes back before it hears of the raised level.
        while (Levels(cluster).Max() == 1)
        {
            cluster.Tick();
        }

        cluster.Crash(away);
        _features.Remove(away.Value);
        try
        {
            cluster.Start(away);
            cluster.Tick(100);
            Assert.IsType<FeatureLevelException>(cluster[away.Value].Failures[0]);
        }
        catch (FeatureLevelException)
        {
            // Its log had an entry of the level already.
        }

        cluster.Cut.Add(away);
        Assert.NotEqual(away, cluster.Elect());
    }

    private ModelCluster Cluster(int nodes)
    {
        ModelCluster cluster = new(nodes, configure: options => options with
        {
            HasEphemeral = true,
            FeatureLevelMax = _hold,
            StateLimits = new StateLimits
            {
                Features = _features.GetValueOrDefault(options.Self.Value, FeatureLevels.Supported),
            },
        });
        cluster.Elect();
        cluster.Tick(100);
        return cluster;
    }

    private void Upgrade(ModelCluster cluster, NodeId id, bool settles = true)
    {
        _features[id.Value] = FeatureLevels.SupportedInTest;
        cluster.Crash(id);
        cluster.Start(id);
        if (settles)
        {
            cluster.Elect();
            cluster.Tick(100);
        }
    }

    private static int[] Levels(ModelCluster cluster) =>
        [.. cluster.Ids.Select(id => cluster[id.Value].Loops!.FeatureLevel.Value)];
}
