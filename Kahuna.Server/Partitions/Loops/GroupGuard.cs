using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Partitions.Requests;
using Kahuna.Server.Primitives;
using Kahuna.Server.Raft;

namespace Kahuna.Server.Partitions.Loops;

/// <summary>Whatever a loop does with a group: a broken rule stops the group, and only it. Owned by the loop.</summary>
internal sealed class GroupGuard(ILeadershipSink leadership)
{
    /// <summary>Does something with a group that has not stopped.</summary>
    public void Do<T>(Group group, Action<Group, T> action, T argument)
    {
        if (!group.Failed)
        {
            Ask(group, action, argument);
        }
    }

    /// <summary>Asks a group for an answer that somebody waits for, also one that has stopped.</summary>
    public void Ask<T>(Group group, Action<Group, T> action, T argument)
    {
        try
        {
            action(group, argument);
        }
        catch (InvariantException error)
        {
            Stop(group, error);
        }
    }

    /// <summary>Gives a client's operation to a group, also to one that has stopped: it answers so.</summary>
    public void Accept(Group group, ClientBatch batch, int operation)
    {
        try
        {
            group.Accept(batch, operation);
        }
        catch (InvariantException error)
        {
            Stop(group, error);
        }
    }

    /// <summary>Gives a message to a group that has not stopped.</summary>
    public void Step(Group group, in RaftMessage message, in MessageStamp stamp, ReadOnlySpan<byte> entries)
    {
        try
        {
            if (!group.Failed)
            {
                group.Step(message, stamp, entries);
            }
        }
        catch (InvariantException error)
        {
            Stop(group, error);
        }
    }

    /// <summary>Starts a group. One that could not be loaded takes nothing from the start.</summary>
    public void Start(Group group)
    {
        if (group.LoadError is { } error)
        {
            Stop(group, error);
            return;
        }

        group.Start();
    }

    private void Stop(Group group, Exception error)
    {
        group.Fail();
        leadership.PartitionFailed(group.Slot, error);
    }
}
