using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;
using Kahuna.Tests.Transport;

namespace Kahuna.Tests.Hosting;

/// <summary>The log says who leads, since which term, and whether a majority is reached.</summary>
public sealed class LeadershipLogTests : IDisposable
{
    private const int Patience = 160;

    private readonly LogRecorder _log = new();
    private readonly ClusterView _view = new(new ClusterIdentity(
        "test", new NodeId(1), "0", 20, [.. Enumerable.Range(1, 3).Select(id => (new NodeId((ushort)id), new Uri($"https://n{id}:8082")))]));

    private readonly LeadershipLog _leadership;
    private int _reached = 1;

    public LeadershipLogTests() => _leadership = new LeadershipLog(_view, () => _reached, _log, Patience);

    public void Dispose() => _leadership.Dispose();

    [Fact]
    public void A_change_of_leader_is_one_line_for_all_its_groups()
    {
        _leadership.Check();
        Assert.Empty(_log.Lines);

        Lead(new NodeId(2), term: 7, slots: 20);
        _leadership.Check();
        _leadership.Check();
        string line = Assert.Single(_log.Lines);
        Assert.Contains("Node 2 leads", line, StringComparison.Ordinal);
        Assert.Contains("(20 group(s)) since term 7", line, StringComparison.Ordinal);
        Assert.EndsWith(", … (20 group(s)) since term 7.", line, StringComparison.Ordinal);
    }

    [Fact]
    public void A_lost_leader_and_the_next_one_are_told()
    {
        Lead(new NodeId(2), term: 7, slots: 1);
        _leadership.Check();
        Lead(NodeId.None, term: 8, slots: 1);
        _leadership.Check();
        Lead(new NodeId(3), term: 8, slots: 1);
        _leadership.Check();

        Assert.Equal(3, _log.Lines.Count);
        Assert.Equal(1, _log.Count("No leader is known for"));
        Assert.Equal(1, _log.Count("Node 3 leads"));
    }

    [Fact]
    public void A_change_of_another_kind_is_no_line()
    {
        Lead(new NodeId(2), term: 7, slots: 1);
        _leadership.Check();
        _view.SetVoting(false);
        Lead(new NodeId(2), term: 7, slots: 1);
        _leadership.Check();

        Assert.Single(_log.Lines);
    }

    [Fact]
    public void A_majority_that_is_lost_and_reached_again_is_told_once_each()
    {
        Look(reached: 1);
        Assert.Empty(_log.Lines);
        Look(reached: 2);
        Look(reached: 3);
        Assert.Equal(1, _log.Count("Majority reached"));
        Look(reached: 1);
        Look(reached: 1);
        Assert.Equal(1, _log.Count("No majority: this node reaches 1 of 3 nodes"));
        Look(reached: 2);
        Assert.Equal(3, _log.Lines.Count);
    }

    [Fact]
    public void A_node_that_starts_without_a_majority_says_so_once()
    {
        for (int look = 1; look < Patience; look++)
        {
            Look(reached: 1);
        }

        Assert.Empty(_log.Lines);
        for (int look = 0; look < Patience; look++)
        {
            Look(reached: 1);
        }

        Assert.Contains(
            "No majority: this node reaches 1 of 3 nodes, itself included. Nothing can be "
                + "written here until it reaches 2.",
            Assert.Single(_log.Lines),
            StringComparison.Ordinal);
        Look(reached: 2);
        Assert.Equal(1, _log.Count("Majority reached"));
    }

    private void Look(int reached)
    {
        _reached = reached;
        _leadership.Check();
    }

    private void Lead(NodeId leader, ulong term, int slots)
    {
        for (int slot = 0; slot < slots; slot++)
        {
            ((ILeadershipSink)_view).LeadershipChanged(
                slot,
                new PartitionStatus(
                    RaftRole.Follower, leader, new Term(term), Serving: leader != NodeId.None, Epoch.None));
        }
    }
}
