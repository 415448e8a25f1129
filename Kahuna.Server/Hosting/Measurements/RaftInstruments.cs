using System.Globalization;
using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Raft;

namespace Kahuna.Server.Hosting.Measurements;

/// <summary>The metrics of consensus: leaders, terms, indexes, lag. Stateless.</summary>
internal static class RaftInstruments
{
    /// <summary>Adds them.</summary>
    public static void Add(NodeMeter meter, NodeFigures node, GroupLabels groups)
    {
        ClusterView view = node.View;
        AddLeaders(meter, view, groups);
        AddIndexes(meter, node, groups);
        meter.Gauge(
            new("kahuna.raft.follower.lag", "Committed entries that a follower of this leader lacks.", "{entry}"),
            groups.Count * view.Identity.Nodes.Count,
            () => groups.Each(GroupLabels.Peer, index => Metrics(node, index).Followers.Select(static follower =>
                (Text(follower.Member.Value), follower.Entries))));
        meter.Gauge(
            new("kahuna.raft.proposals.pending", "Writes of this leader that are not answered yet.", "{write}"),
            groups.Count,
            () => groups.Each(index => Metrics(node, index).Requests.Proposals));
        meter.Gauge(
            new("kahuna.raft.reads.pending", "Reads that wait for their round, or for their turn.", "{read}"),
            groups.Count,
            () => groups.Each(index => Metrics(node, index).Requests.Reads));
        meter.Gauge(
            new("kahuna.peer.connected", "1 while the link to the other node is up."),
            view.Identity.Nodes.Count,
            () => view.Identity.Nodes.Where(peer => peer.Id != view.Identity.Self).Select(peer =>
                new System.Diagnostics.Metrics.Measurement<long>(
                    node.Links.IsUp(peer.Id) ? 1 : 0, new KeyValuePair<string, object?>(
                        GroupLabels.Peer, Text(peer.Id.Value)))));
    }

    private static void AddLeaders(NodeMeter meter, ClusterView view, GroupLabels groups)
    {
        meter.Gauge(
            new("kahuna.raft.term", "The current term."),
            groups.Count,
            () => groups.Each(index => (long)view.Status(index).Term.Value));
        meter.Gauge(
            new("kahuna.raft.leading", "1 while this node leads the group."),
            groups.Count,
            () => groups.Each(index => view.Status(index).Role == RaftRole.Leader ? 1 : 0));
        meter.Gauge(
            new("kahuna.raft.leader.known", "1 while this node knows a leader of the group that serves."),
            groups.Count,
            () => groups.Each(index => view.Status(index).Serving ? 1 : 0));
        meter.Counter(
            new("kahuna.raft.leader.changes", "How often another node than before came to lead the group.", "{change}"),
            groups.Count,
            () => groups.Each(view.LeaderChanges));
        meter.Gauge(
            new("kahuna.raft.epoch", "The epoch of an ephemeral group; 0 for others."),
            groups.Count,
            () => groups.Each(index => (long)view.Status(index).Epoch.Value));
        meter.Gauge(
            new("kahuna.raft.catching_up", "1 while this node has not caught up with the leader."),
            groups.Count,
            () => groups.Each(index => view.Status(index).Lags ? 1 : 0));
        meter.Gauge(
            new("kahuna.raft.stopped", "1 if the group has stopped on this node; see 'stopped' in /status."),
            groups.Count,
            () => groups.Each(index => view.FailureOf(index) is null ? 0 : 1));
    }

    private static void AddIndexes(NodeMeter meter, NodeFigures node, GroupLabels groups)
    {
        meter.Gauge(
            new("kahuna.raft.commit.index", "Index of the last entry that is committed."),
            groups.Count,
            () => groups.Each(index => (long)node.Loops.Group(index).CommitIndex.Value));
        meter.Gauge(
            new("kahuna.raft.applied.index", "Index of the last entry that is in the state."),
            groups.Count,
            () => groups.Each(index => (long)Metrics(node, index).Applied.Value));
        meter.Gauge(
            new("kahuna.raft.stored.index", "Index of the last entry that is in the stored state."),
            groups.Count,
            () => groups.Each(index => (long)Metrics(node, index).Stored.Value));
        meter.Gauge(
            new("kahuna.raft.voting", "1 while this node takes part in elections of the group."),
            groups.Count,
            () => groups.Each(index => Metrics(node, index).MayVote ? 1 : 0));
    }

    private static PartitionMetrics Metrics(NodeFigures node, int index) => node.Loops.Group(index).Metrics;

    private static string Text(ushort id) => id.ToString(CultureInfo.InvariantCulture);
}
