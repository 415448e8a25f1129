using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// Which groups a node has, each in a slot: first the partitions' persistent groups, then, where the cluster has them,
/// their ephemeral groups in the same order, and the meta group at last. Both groups of a partition belong to one loop.
/// Immutable; any thread.
/// </summary>
/// <param name="Partitions">Number of partitions.</param>
/// <param name="HasEphemeral">There are ephemeral groups and the meta group.</param>
internal sealed record GroupLayout(int Partitions, bool HasEphemeral)
{
    /// <summary>Number of groups.</summary>
    public int Slots => HasEphemeral ? (2 * Partitions) + 1 : Partitions;

    /// <summary>The slot of a key's group.</summary>
    public int SlotOf(int partition, bool isEphemeral) => isEphemeral ? Partitions + partition : partition;

    /// <summary>The slot of a group; -1 for one that there is not.</summary>
    public int SlotOf(GroupId group)
    {
        if (group.IsMeta)
        {
            return HasEphemeral ? 2 * Partitions : -1;
        }

        int partition = group.Partition;
        return partition < 0 || partition >= Partitions || (group.IsEphemeral && !HasEphemeral)
            ? -1 : SlotOf(partition, group.IsEphemeral);
    }

    public GroupId GroupOf(int slot) =>
        slot == 2 * Partitions ? GroupId.Meta : GroupId.Of(PartitionOf(slot), isEphemeral: slot >= Partitions);

    /// <summary>Number of the partition that a group serves; 0 for the meta group.</summary>
    public int PartitionOf(int slot) => slot % Partitions;

    /// <summary>The loop that owns a group, where there are <paramref name="loops"/> of them.</summary>
    public int LoopOf(int slot, int loops) => PartitionOf(slot) % loops;
}
