using Kahuna.Server.Hosting.Options;

namespace Kahuna.Tests.Hosting;

/// <summary>How many partitions a cluster has for which nobody gives a number.</summary>
public sealed class PartitionsForTests
{
    [Theory]
    [InlineData(1, 1)]
    [InlineData(2, 1)]
    [InlineData(4, 2)]
    [InlineData(16, 8)]
    [InlineData(64, 16)]
    public void A_new_cluster_has_a_partition_for_every_two_processors(int processors, int partitions) =>
        Assert.Equal(partitions, NodeOptions.PartitionsFor(processors));
}
