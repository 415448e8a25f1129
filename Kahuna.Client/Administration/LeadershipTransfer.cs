namespace Kahuna.Client.Administration;

/// <summary>Which of a cluster's groups of nodes, each of which has a leader of its own.</summary>
public enum PartitionGroup
{
    /// <summary>The group of a partition's persistent keys.</summary>
    Persistent,

    /// <summary>The group of a partition's ephemeral keys.</summary>
    Ephemeral,

    /// <summary>The group of the cluster's own records, such as users; it belongs to no partition.</summary>
    Meta,
}

/// <summary>Which leadership is to move, and where. Immutable.</summary>
public sealed record LeadershipTransfer
{
    /// <summary>The partition; 0 for <see cref="PartitionGroup.Meta"/>.</summary>
    public int Partition { get; init; }

    /// <summary>Which group of the partition.</summary>
    public PartitionGroup Group { get; init; }

    /// <summary>
    /// The node that is to lead; null: the follower with the longest log. It keeps leadership for ten minutes before
    /// the cluster may move it to the node that it prefers.
    /// </summary>
    public int? To { get; init; }

    /// <summary>Only if this node leads; null: whichever node leads.</summary>
    public int? From { get; init; }

    /// <summary>To the node that the cluster prefers; <see cref="To"/> is null.</summary>
    public bool ToPreferred { get; init; }
}

/// <summary>How a transfer of leadership ended. Immutable.</summary>
/// <param name="Moved">
/// Another node leads than before. False: the wanted node led already, or <see cref="LeadershipTransfer.From"/> did not
/// lead.
/// </param>
/// <param name="Leader">The node that leads now. It need not be the wanted one, if that has failed meanwhile.</param>
/// <param name="Previous">The node that led before.</param>
public sealed record LeadershipMove(bool Moved, int Leader, int Previous);
