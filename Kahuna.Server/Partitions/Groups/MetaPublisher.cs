using Kahuna.Server.State.Meta;
using Kahuna.Wire.Buffers;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// Between the meta group on this node and everybody else on it: hands its records to all loops, and what they want
/// recorded to its loop. Any thread.
/// </summary>
internal sealed class MetaPublisher
{
    private readonly Lock _lock = new();
    private IReadOnlyList<IMetaListener> _loops = [];
    private MetaView _latest = MetaView.Empty;

    /// <summary>What the meta group has recorded, as far as this node knows.</summary>
    public MetaView Latest
    {
        get
        {
            lock (_lock)
            {
                return _latest;
            }
        }
    }

    /// <summary>Names the loops; the first owns the meta group.</summary>
    public void Attach(IReadOnlyList<IMetaListener> loops)
    {
        lock (_lock)
        {
            _loops = loops;
        }

        Publish(_latest);
    }

    /// <summary>The meta group has applied something.</summary>
    public void Publish(MetaView view)
    {
        IReadOnlyList<IMetaListener> loops;
        lock (_lock)
        {
            _latest = view;
            loops = _loops;
        }

        foreach (IMetaListener loop in loops)
        {
            loop.PostMeta(view);
        }
    }

    /// <summary>Passes a command on to the meta group; it may be lost.</summary>
    public void Ask(MetaCommand command)
    {
        IReadOnlyList<IMetaListener> loops = _loops;
        if (loops.Count > 0)
        {
            ByteBuffer bytes = ByteBuffer.Rent();
            command.Write(bytes);
            loops[0].PostMetaAsk(bytes);
        }
    }
}

/// <summary>A loop, as the meta group's publisher sees it. Any thread.</summary>
internal interface IMetaListener
{
    /// <summary>The meta group's records have changed.</summary>
    void PostMeta(MetaView view);

    /// <summary>The meta group, which this loop owns, is to record a command; takes over the buffer.</summary>
    void PostMetaAsk(ByteBuffer command);
}
