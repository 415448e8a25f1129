using Kahuna.Server.Hosting.Page;
using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Primitives;
using Kahuna.Tests.Partitions;
using Kahuna.Wire.Commands;
using Kahuna.Wire.Outcomes;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>Looks at a group on its loop.</summary>
public sealed class InspectionTests
{
    [Fact]
    public void A_look_that_throws_fails_alone()
    {
        // Whatever leaves a turn is thrown here.
        ModelCluster cluster = new(1);
        NodeId leader = cluster.Elect();
        ThrowingInspection throwing = new();
        Assert.True(cluster[1].Loops!.TryInspect(0, throwing.Look));
        cluster.Settle();
        Assert.Equal("planned", throwing.Ended.Exception?.InnerException?.Message);

        ModelSink write = cluster.Send(leader, (CommandKind.Set, "a", "1"));
        cluster.Settle();
        Assert.Equal(OutcomeStatus.Applied, write.Replies[0].Status);
        QueueInspection next = new(0, "a"u8.ToArray(), 1);
        Assert.True(cluster[1].Loops!.TryInspect(0, next.Look));
        cluster.Settle();
        Assert.True(next.Ended.IsCompletedSuccessfully);
    }

    private sealed class ThrowingInspection() : Inspection(0)
    {
        protected override void Read(Group group) => throw new InvalidOperationException("planned");
    }
}
