using Kahuna.Server.Cluster;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Tests.Api;

/// <summary>Who is told of which changes of the cluster's picture.</summary>
public sealed class ClusterViewTests
{
    private static readonly NodeId s_one = new(1);
    private static readonly NodeId s_two = new(2);
    private static readonly PartitionStatus s_follower = new(RaftRole.Follower, s_two, new Term(3), true, Epoch.None);
    private static readonly PartitionStatus s_nobody =
        new(RaftRole.PreCandidate, NodeId.None, new Term(3), false, Epoch.None);

    private readonly ClusterView _view = new(new ClusterIdentity("test", s_one, "1", 1, [(s_one, new Uri("https://127.0.0.1:1"))]), hasEphemeral: false);
    private int _all;
    private int _routes;

    public ClusterViewTests()
    {
        _view.Watch(() => _all++);
        _view.WatchRoutes(() => _routes++);
    }

    [Fact]
    public void Streams_are_told_of_what_clients_go_by_and_others_of_everything()
    {
        Change(s_follower, isRoute: true);
        Change(s_follower with { Lags = true }, isRoute: false);
        Change(s_follower, isRoute: false);
        Change(s_nobody, isRoute: true);
        Change(s_nobody with { Role = RaftRole.Candidate, Term = new Term(4) }, isRoute: false);
        Change(s_nobody with { Term = new Term(4) }, isRoute: false);
        Change(s_follower with { Term = new Term(4) }, isRoute: true);
        Change(s_follower with { Term = new Term(5) }, isRoute: true);
        Change(new PartitionStatus(RaftRole.Leader, s_one, new Term(6), false, Epoch.None), isRoute: true);
        Change(new PartitionStatus(RaftRole.Leader, s_one, new Term(6), true, Epoch.None), isRoute: true);
        Change(new PartitionStatus(RaftRole.Leader, s_one, new Term(6), true, new Epoch(1)), isRoute: true);
    }

    [Fact]
    public void Who_has_ended_its_watch_is_told_nothing()
    {
        int told = 0;
        _view.WatchRoutes(() => told++).Dispose();
        _view.Watch(() => told++).Dispose();
        Change(s_follower, isRoute: true);
        Assert.Equal(0, told);
    }

    [Fact]
    public void A_change_of_leaders_is_counted_once_when_another_node_leads()
    {
        void Leads(NodeId leader, ulong term, long changes)
        {
            ((ILeadershipSink)_view).LeadershipChanged(
                0, s_follower with { Leader = leader, Term = new Term(term), Serving = !leader.IsNone });
            Assert.Equal(changes, _view.LeaderChanges(0));
        }

        Leads(s_two, 3, 0);
        Leads(s_two, 3, 0);
        Leads(NodeId.None, 4, 0);
        Leads(s_two, 5, 0);
        Leads(NodeId.None, 6, 0);
        Leads(s_one, 6, 1);
        Leads(s_one, 7, 1);
        Leads(s_two, 8, 2);
    }

    private void Change(PartitionStatus status, bool isRoute)
    {
        (int all, int routes) = (_all, _routes);
        ((ILeadershipSink)_view).LeadershipChanged(0, status);
        Assert.Equal((all + 1, routes + (isRoute ? 1 : 0)), (_all, _routes));
    }
}
