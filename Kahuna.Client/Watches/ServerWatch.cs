using Kahuna.Wire.Watches;

namespace Kahuna.Client.Watches;

/// <summary>
/// A watch at a node, which serves every watch of the client with the same filter that can go on where it is. Owned by
/// the <see cref="WatchBook"/> and used under its lock.
/// </summary>
internal sealed class ServerWatch(uint id, WatchFilter filter, WatchPosition points)
{
    private WatchQueue? _first;
    private List<WatchQueue>? _others;

    /// <summary>Its id on every stream.</summary>
    public uint Id => id;

    /// <summary>What it is about.</summary>
    public WatchFilter Filter => filter;

    /// <summary>
    /// Everything up to here was handed on, apart from <see cref="Run"/> and from what the stream's progress says.
    /// </summary>
    public WatchPosition Points { get; set; } = points;

    /// <summary>The newest change that was handed on, if it is not in <see cref="Points"/>; group 0: it is.</summary>
    public ChangePoint Run { get; set; }

    /// <summary>The stream's progress of which <see cref="Points"/> takes account.</summary>
    public ulong RefreshedAt { get; set; }

    /// <summary>Progress that the stream told up to this number does not concern this watch.</summary>
    public ulong Mark { get; set; }

    /// <summary>The node was asked to begin it.</summary>
    public bool IsSent { get; set; }

    /// <summary>The node has begun it.</summary>
    public bool IsBegun { get; set; }

    /// <summary>Nothing has come yet on this stream: another node may have what this one has lost.</summary>
    public bool MayBeElsewhere { get; set; }

    /// <summary>No watch of the client needs it.</summary>
    public bool IsOver { get; set; }

    /// <summary>How many queues it adds to.</summary>
    public int Count => (_first is null ? 0 : 1) + (_others?.Count ?? 0);

    /// <summary>A queue by its place.</summary>
    public WatchQueue this[int i] => i == 0 ? _first! : _others![i - 1];

    /// <summary>Adds to a queue from now on.</summary>
    public void Add(WatchQueue queue)
    {
        if (_first is null)
        {
            _first = queue;
        }
        else
        {
            (_others ??= []).Add(queue);
        }

        queue.Source = this;
    }

    /// <summary>Adds to a queue no more.</summary>
    public void Remove(WatchQueue queue)
    {
        queue.Source = null;
        if (_first != queue)
        {
            _others?.Remove(queue);
        }
        else if (_others is { Count: > 0 })
        {
            _first = _others[^1];
            _others.RemoveAt(_others.Count - 1);
        }
        else
        {
            _first = null;
        }
    }

    /// <summary>A node serves it on another stream, or will.</summary>
    public void Restart()
    {
        MayBeElsewhere = true;
        (IsSent, IsBegun, Mark, RefreshedAt, Run) = (false, false, 0, 0, default);
    }
}
