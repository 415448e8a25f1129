using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Server.State;

namespace Kahuna.Server.Partitions.Snapshots;

/// <summary>
/// Views of a state that is in memory only, one for each transfer to a follower; the checkpoint service takes their
/// records slice by slice. Owned by one group; not thread-safe.
/// </summary>
internal sealed class SentViews(GroupId group, AppliedState applied, ICheckpointInbox checkpoints)
{
    private readonly Dictionary<ulong, StateView> _views = [];

    /// <summary>Begins a view for a transfer, or says that there is none to be had now.</summary>
    public void Begin(ulong transfer, bool mayBegin)
    {
        if (!mayBegin)
        {
            checkpoints.Post(new ViewBegun(group, null, Whole: true, transfer));
            return;
        }

        InvariantException.Require(!_views.ContainsKey(transfer), "a transfer has one view");
        StateView view = applied.State.ViewAll();
        _views[transfer] = view;
        checkpoints.Post(new ViewBegun(group, CheckpointMark.Of(applied, view), Whole: true, transfer));
    }

    /// <summary>Fills a slice for a transfer. A view that is gone is told as ended.</summary>
    public void Take(ulong transfer, ViewSlice slice, int bytesMax)
    {
        bool ended = !_views.TryGetValue(transfer, out StateView? view);
        bool more = !ended && view!.TryTake(slice, bytesMax);
        checkpoints.Post(new RecordsTaken(group, slice, more, ended, 0, transfer));
    }

    /// <summary>A transfer is over.</summary>
    public void End(ulong transfer)
    {
        if (_views.Remove(transfer, out StateView? view))
        {
            view.Dispose();
        }
    }

    /// <summary>The state is replaced, or the group has stopped: no transfer goes on.</summary>
    public void EndAll()
    {
        foreach (StateView view in _views.Values)
        {
            view.Dispose();
        }

        _views.Clear();
    }
}
