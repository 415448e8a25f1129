namespace Kahuna.Server.Partitions.Ports;

/// <summary>
/// Port: where a loop tells what others want to know of a partition. Called from the loop's turn; must not block.
/// </summary>
internal interface ILeadershipSink
{
    /// <summary>Leader, term or this node's role have changed.</summary>
    void LeadershipChanged(int slot, PartitionStatus status);

    /// <summary>A rule of the program is broken: the partition has stopped and serves nothing any more.</summary>
    void PartitionFailed(int slot, Exception error);

    /// <summary>The log or the stored state is dead; the node must stop.</summary>
    void StorageFailed(Exception error);
}
