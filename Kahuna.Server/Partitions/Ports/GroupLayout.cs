using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// The groups of a node, as a table: each has an index on the node. First come the partitions' persistent groups, then,
/// where the cluster has them, their ephemeral groups in the same order, and the meta group last. Both groups of a
/// partition belong to one loop. Built once; immutable; any thread.
/// </summary>
internal sealed class GroupLayout
{
    private readonly PlacedGroup[] _groups;
    private readonly Dictionary<GroupId, int> _indexes = [];

    /// <summary>The layout of a node.</summary>
    /// <param name="partitions">Number of partitions.</param>
    /// <param name="hasEphemeral">There are ephemeral groups and the meta group.</param>
    public GroupLayout(int partitions, bool hasEphemeral)
    {
        Partitions = partitions;
        _groups = new PlacedGroup[hasEphemeral ? (2 * partitions) + 1 : partitions];
        for (int partition = 0; partition < partitions; partition++)
        {
            _groups[partition] = new PlacedGroup(GroupId.Of(partition, isEphemeral: false), partition);
            if (hasEphemeral)
            {
                _groups[partitions + partition] = new PlacedGroup(GroupId.Of(partition, isEphemeral: true), partition);
            }
        }

        if (hasEphemeral)
        {
            _groups[^1] = new PlacedGroup(GroupId.Meta, Partition: 0);
        }

        for (int index = 0; index < _groups.Length; index++)
        {
            _indexes.Add(_groups[index].Id, index);
        }
    }

    /// <summary>Number of partitions.</summary>
    public int Partitions { get; }

    /// <summary>Number of groups.</summary>
    public int Count => _groups.Length;

    /// <summary>The index of the group that holds a partition's keys of one durability.</summary>
    public int IndexOf(int partition, bool isEphemeral) => isEphemeral ? Partitions + partition : partition;

    /// <summary>The index of a group; -1 for one that there is not.</summary>
    public int IndexOf(GroupId group) => _indexes.GetValueOrDefault(group, -1);

    /// <summary>The group at an index.</summary>
    public GroupId GroupOf(int index) => _groups[index].Id;

    /// <summary>Number of the partition that a group serves; 0 for the meta group.</summary>
    public int PartitionOf(int index) => _groups[index].Partition;

    /// <summary>The loop that owns a group, where there are <paramref name="loops"/> of them.</summary>
    public int LoopOf(int index, int loops) => PartitionOf(index) % loops;

    private readonly record struct PlacedGroup(GroupId Id, int Partition);
}
