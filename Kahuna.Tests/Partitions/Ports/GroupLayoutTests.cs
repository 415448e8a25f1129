using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;

namespace Kahuna.Tests.Partitions.Ports;

public sealed class GroupLayoutTests
{
    [Fact]
    public void EveryGroupHasASlotOfItsOwnAndBack()
    {
        GroupLayout layout = new(3, HasEphemeral: true);
        Assert.Equal(7, layout.Slots);
        for (int slot = 0; slot < layout.Slots; slot++)
        {
            Assert.Equal(slot, layout.SlotOf(layout.GroupOf(slot)));
        }

        Assert.Equal(new GroupId(3), layout.GroupOf(2));
        Assert.Equal(GroupId.Of(2, isEphemeral: true), layout.GroupOf(5));
        Assert.Equal(GroupId.Meta, layout.GroupOf(6));
    }

    [Fact]
    public void BothGroupsOfAPartitionBelongToOneLoopAndTheMetaGroupToTheFirst()
    {
        GroupLayout layout = new(5, HasEphemeral: true);
        for (int partition = 0; partition < 5; partition++)
        {
            Assert.Equal(
                layout.LoopOf(layout.SlotOf(partition, isEphemeral: false), 2),
                layout.LoopOf(layout.SlotOf(partition, isEphemeral: true), 2));
        }

        Assert.Equal(0, layout.LoopOf(layout.SlotOf(GroupId.Meta), 2));
    }

    [Fact]
    public void WhatIsNotThereHasNoSlot()
    {
        GroupLayout persistentOnly = new(2, HasEphemeral: false);
        Assert.Equal(2, persistentOnly.Slots);
        Assert.Equal(-1, persistentOnly.SlotOf(GroupId.Meta));
        Assert.Equal(-1, persistentOnly.SlotOf(GroupId.Of(0, isEphemeral: true)));
        Assert.Equal(-1, persistentOnly.SlotOf(new GroupId(3)));
        Assert.Equal(-1, persistentOnly.SlotOf(GroupId.Node));
        Assert.Equal(-1, new GroupLayout(2, HasEphemeral: true).SlotOf(GroupId.Node));
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
