using Kahuna.Server.Partitions.Ephemeral;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Server.Partitions;

/// <summary>Whatever a loop does with a partition: a broken rule stops the partition, and only it. Owned by the loop.</summary>
internal sealed class PartitionGuard(ILeadershipSink leadership)
{
    /// <summary>Does something with a partition that has not stopped.</summary>
    public void Do<T>(Partition partition, Action<Partition, T> action, T argument)
    {
        if (!partition.Failed)
        {
            Ask(partition, action, argument);
        }
    }

    /// <summary>Asks a partition for an answer that somebody waits for, also one that has stopped.</summary>
    public void Ask<T>(Partition partition, Action<Partition, T> action, T argument)
    {
        try
        {
            action(partition, argument);
        }
        catch (InvariantException error)
        {
            Stop(partition, error);
        }
    }

    /// <summary>Gives a client's operation to a partition, also to one that has stopped: it answers so.</summary>
    public void Accept(Partition partition, ClientBatch batch, int operation)
    {
        try
        {
            partition.Accept(batch, operation);
        }
        catch (InvariantException error)
        {
            Stop(partition, error);
        }
    }

    /// <summary>Gives a message to a partition that has not stopped.</summary>
    public void Step(Partition partition, in RaftMessage message, in MessageStamp stamp, ReadOnlySpan<byte> entries)
    {
        try
        {
            if (!partition.Failed)
            {
                partition.Step(message, stamp, entries);
            }
        }
        catch (InvariantException error)
        {
            Stop(partition, error);
        }
    }

    /// <summary>A partition that could not be loaded takes nothing from the start.</summary>
    public void StopUnlessLoaded(Partition partition)
    {
        if (partition.LoadError is { } error)
        {
            Stop(partition, error);
        }
    }

    private void Stop(Partition partition, Exception error)
    {
        partition.Fail();
        leadership.PartitionFailed(partition.Number, error);
    }
}
