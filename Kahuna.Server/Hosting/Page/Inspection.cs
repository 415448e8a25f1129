using Kahuna.Server.Partitions.Groups;

namespace Kahuna.Server.Hosting.Page;

/// <summary>
/// A look at a group of this node, on the loop that owns it, between other work. It reads a bounded part and changes
/// nothing. One that fails stops neither the group nor the loop. Made by any thread; used once.
/// </summary>
/// <param name="groupIndex">The index of the group.</param>
internal abstract class Inspection(int groupIndex)
{
    private readonly TaskCompletionSource _ended = new(TaskCreationOptions.RunContinuationsAsynchronously);

    /// <summary>The index of the group.</summary>
    public int GroupIndex => groupIndex;

    /// <summary>Completes when the group was looked at; it never does if the node stops first.</summary>
    public Task Ended => _ended.Task;

    /// <summary>Looks at the group, which may have stopped or not be there. For the loop.</summary>
    public void Look(Group? group)
    {
        try
        {
            if (group is { Failed: false })
            {
                Read(group);
            }

            _ended.SetResult();
        }
        catch (Exception error)
        {
            _ended.SetException(error);
        }
    }

    /// <summary>Reads a group that has not stopped.</summary>
    protected abstract void Read(Group group);
}
