using Kahuna.Client.Connection;
using Kahuna.Wire.Protos;

namespace Kahuna.Tests.Client;

public sealed class ClusterMapTests
{
    [Theory]
    [InlineData(5, 1, 6, 2, 2)]
    [InlineData(5, 1, 4, 2, 1)]
    [InlineData(5, 1, 5, 2, 1)]
    [InlineData(5, 0, 5, 2, 2)]
    [InlineData(5, 1, 6, 0, 0)]
    [InlineData(5, 1, 5, 0, 1)]
    public void The_newer_term_wins(ulong knownTerm, int knownLeader, ulong term, int leader, int expected)
    {
        ClusterMap map = ClusterMap.Empty.Merge(View((knownLeader, knownTerm))).Merge(View((leader, term)));
        Assert.Equal(new PartitionRoute(expected, Math.Max(knownTerm, term)), map[0]);
    }

    [Fact]
    public void Hearsay_gives_way_to_any_report_of_its_term()
    {
        ClusterMap map = ClusterMap.Empty.Merge(View((1, 5))).WithLeader(0, 3);
        Assert.Equal(3, map[0].LeaderNodeId);
        Assert.Equal(3, map.Merge(View((2, 4)))[0].LeaderNodeId);
        Assert.Equal(new PartitionRoute(2, 5), map.Merge(View((2, 5)))[0]);
    }

    [Fact]
    public void Another_number_of_partitions_forgets_what_was_known()
    {
        ClusterMap map = ClusterMap.Empty.Merge(View((1, 5), (1, 5))).Merge(View((2, 1)));
        Assert.Equal(1, map.Partitions);
        Assert.Equal(new PartitionRoute(2, 1), map[0]);
    }

    [Fact]
    public void A_view_that_makes_no_sense_is_refused()
    {
        DescribeClusterResponse view = View((1, 1));
        view.Partitions[0].Partition = 7;
        Assert.Contains(
            "partition 7 of 1",
            Assert.Throws<InvalidDataException>(() => ClusterMap.Empty.Merge(view)).Message,
            StringComparison.Ordinal);
    }

    private static DescribeClusterResponse View(params (int Leader, ulong Term)[] partitions)
    {
        DescribeClusterResponse view = new() { ClusterId = "c", NodeId = 1 };
        for (int i = 0; i < partitions.Length; i++)
        {
            view.Partitions.Add(new PartitionLeader
            {
                Partition = (uint)i,
                LeaderNodeId = (uint)partitions[i].Leader,
                Term = partitions[i].Term,
            });
        }

        return view;
    }
}
