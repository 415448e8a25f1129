using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Partitions.Ports;

public sealed class GroupLayoutTests
{
    [Fact]
    public void EveryGroupHasASlotOfItsOwnAndBack()
    {
        GroupLayout layout = new(3, hasEphemeral: true);
        Assert.Equal(7, layout.Count);
        for (int index = 0; index < layout.Count; index++)
        {
            Assert.Equal(index, layout.IndexOf(layout.GroupOf(index)));
        }

        Assert.Equal(new GroupId(3), layout.GroupOf(2));
        Assert.Equal(GroupId.Of(2, isEphemeral: true), layout.GroupOf(5));
        Assert.Equal(GroupId.Meta, layout.GroupOf(6));
    }

    [Fact]
    public void BothGroupsOfAPartitionBelongToOneLoopAndTheMetaGroupToTheFirst()
    {
        GroupLayout layout = new(5, hasEphemeral: true);
        for (int partition = 0; partition < 5; partition++)
        {
            Assert.Equal(
                layout.LoopOf(layout.IndexOf(partition, isEphemeral: false), 2),
                layout.LoopOf(layout.IndexOf(partition, isEphemeral: true), 2));
        }

        Assert.Equal(0, layout.LoopOf(layout.IndexOf(GroupId.Meta), 2));
    }

    [Fact]
    public void WhatIsNotThereHasNoSlot()
    {
        GroupLayout persistentOnly = new(2, hasEphemeral: false);
        Assert.Equal(2, persistentOnly.Count);
        Assert.Equal(-1, persistentOnly.IndexOf(GroupId.Meta));
        Assert.Equal(-1, persistentOnly.IndexOf(GroupId.Of(0, isEphemeral: true)));
        Assert.Equal(-1, persistentOnly.IndexOf(new GroupId(3)));
        Assert.Equal(-1, persistentOnly.IndexOf(GroupId.Node));
        Assert.Equal(-1, new GroupLayout(2, hasEphemeral: true).IndexOf(GroupId.Node));
    }

    [Fact]
    public void NamesAreWhatOperatorsRead()
    {
        Assert.Equal(
            ["partition 4", "ephemeral partition 4", "the meta group"],
            [new GroupId(5).Name, GroupId.Of(4, isEphemeral: true).Name, GroupId.Meta.Name]);
        Assert.Equal(
            ["Partition 4", "Ephemeral partition 4", "Meta group"],
            [new GroupId(5).Title, GroupId.Of(4, isEphemeral: true).Title, GroupId.Meta.Title]);
    }
}
