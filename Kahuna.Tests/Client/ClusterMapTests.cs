using Kahuna.Client.Connection;
using Kahuna.Wire.Protos;
using Kahuna.Wire.Routing;

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

    [Fact]
    public void The_higher_version_of_the_slots_wins()
    {
        SlotMap first = SlotMap.Initial(2);
        SlotMap second = first.Move([new SlotRange(7, 9, 1)])!;
        ClusterMap map = ClusterMap.Empty.Merge(Of(second));
        Assert.Equal((2UL, 1), (map.Slots!.Version, map.Slots[8]));
        Assert.Equal(2UL, map.Merge(Of(first)).Slots!.Version);
        Assert.Equal(2UL, map.Merge(View((1, 5), (1, 5))).Slots!.Version);
        Assert.Equal(3UL, map.Merge(Of(second.Move([new SlotRange(8, 8, 0)])!)).Slots!.Version);
        Assert.Equal(1UL, ClusterMap.Empty.Merge(Of(first)).Merge(Of(first)).Slots!.Version);
    }

    [Fact]
    public void A_view_without_slots_means_the_initial_map_where_none_is_known()
    {
        ClusterMap map = ClusterMap.Empty.Merge(View((1, 5), (2, 5)));
        Assert.Equal(SlotMap.Initial(2).Ranges(), map.Slots!.Ranges());
        Assert.Equal(InitialPartition.Of("orders", 2), map.RouteOf("orders"u8, Durability.Persistent));
    }

    [Theory]
    [InlineData(0, 4094, 0)]
    [InlineData(1, 4095, 0)]
    [InlineData(0, 4095, 2)]
    [InlineData(0, 69631, 0)]
    [InlineData(65536, 4095, 0)]
    [InlineData(0, 4095, 65536)]
    [InlineData(uint.MaxValue, uint.MaxValue, uint.MaxValue)]
    public void Slots_that_make_no_sense_are_refused(uint first, uint last, uint partition)
    {
        DescribeClusterResponse view = View((1, 5), (2, 5));
        view.SlotMapVersion = 9;
        view.SlotRuns.Add(new SlotRun { First = first, Last = last, Partition = partition });
        Assert.Throws<InvalidDataException>(() => ClusterMap.Empty.Merge(view));
    }

    private static DescribeClusterResponse Of(SlotMap slots)
    {
        DescribeClusterResponse view = View((1, 5), (2, 5));
        view.SlotMapVersion = slots.Version;
        view.SlotRuns.AddRange(slots.Ranges().Select(static range =>
            new SlotRun { First = range.First, Last = range.Last, Partition = range.Partition }));
        return view;
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
