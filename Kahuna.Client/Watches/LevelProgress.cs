using Kahuna.Wire.Watches;

namespace Kahuna.Client.Watches;

/// <summary>
/// How far one stream has told the changes of the groups of one level, and the transactions whose end is not known yet.
/// Owned by the <see cref="WatchBook"/> and used under its lock.
/// </summary>
internal sealed class LevelProgress(Durability durability)
{
    private readonly List<GroupProgress> _groups = [];
    private WatchPosition? _snapshot;

    /// <summary>The durability of the groups.</summary>
    public Durability Durability => durability;

    /// <summary>How often progress was told.</summary>
    public ulong Version { get; private set; }

    /// <summary>The groups that were heard of, ascending.</summary>
    public IReadOnlyList<GroupProgress> Groups => _groups;

    /// <summary>The group of a point; it is known from then on.</summary>
    public GroupProgress Group(uint group)
    {
        int at = 0;
        while (at < _groups.Count && _groups[at].Group < group)
        {
            at++;
        }

        if (at == _groups.Count || _groups[at].Group != group)
        {
            _groups.Insert(at, new GroupProgress(group));
            _snapshot = null;
        }

        return _groups[at];
    }

    /// <summary>
    /// Takes progress. Earlier one than before is of a watch that catches up, and says nothing of the others: it is
    /// left out.
    /// </summary>
    public void Take(GroupProgress group, in ChangePoint point, long? asOf)
    {
        if (point < group.Point)
        {
            return;
        }

        if (group.Point != point)
        {
            group.Point = point;
            _snapshot = null;
        }

        group.Number = ++Version;
        group.AsOf = asOf ?? group.AsOf;
    }

    /// <summary>Up to where everything was handed on to a watch.</summary>
    /// <param name="watch">A watch of this level.</param>
    public WatchPosition Of(ServerWatch watch)
    {
        bool hasRun = watch.Run.Group != 0 && !watch.Points.Covers(watch.Run);
        if (watch.IsBegun
            && CoversAll(watch)
            && Snapshot(watch.Points.Cluster) is { } all
            && all.Covers(watch.Points)
            && (!hasRun || all.Covers(watch.Run)))
        {
            return all;
        }

        WatchPosition points = hasRun ? watch.Points.With(watch.Run) : watch.Points;
        if (!watch.IsBegun)
        {
            return points;
        }

        foreach (GroupProgress group in _groups)
        {
            if (group.Number > watch.Mark && !points.Covers(group.Point))
            {
                points = points.With(group.Point);
            }
        }

        return points;
    }

    /// <summary>Up to where everything of one group was handed on to a watch.</summary>
    public bool HasHad(ServerWatch watch, GroupProgress group, in ChangePoint point) =>
        watch.Points.Covers(in point)
            || (watch.Run.Group == point.Group && watch.Run >= point)
            || (watch.IsBegun && group.Number > watch.Mark && group.Point >= point);

    /// <summary>Since when the view of a watch is complete; null: not since the stream carries it.</summary>
    public long? AsOf(ServerWatch watch)
    {
        long? oldest = null;
        foreach (ref readonly ChangePoint point in watch.Points.Points)
        {
            GroupProgress group = Group(point.Group);
            if (group.Number <= watch.Mark || group.AsOf is not { } asOf)
            {
                return null;
            }

            oldest = Math.Min(oldest ?? asOf, asOf);
        }

        return watch.IsBegun ? oldest : null;
    }

    /// <summary>Since when the node's view is complete; null: it has not told, or does not know.</summary>
    public long? OldestAsOf()
    {
        long? oldest = null;
        foreach (GroupProgress group in _groups)
        {
            if (group.Number == 0 || group.AsOf is not { } asOf)
            {
                return null;
            }

            oldest = Math.Min(oldest ?? asOf, asOf);
        }

        return oldest;
    }

    /// <summary>Every group has told progress since the watch has begun.</summary>
    private bool CoversAll(ServerWatch watch)
    {
        foreach (GroupProgress group in _groups)
        {
            if (group.Number <= watch.Mark)
            {
                return false;
            }
        }

        return _groups.Count > 0;
    }

    /// <summary>The progress of all groups, which the positions of many watches share.</summary>
    private WatchPosition Snapshot(ulong cluster) =>
        _snapshot ??= new WatchPosition(cluster, durability, [.. _groups.Select(static group => group.Point)]);
}

/// <summary>What one stream has told of one group. Owned by a <see cref="LevelProgress"/>.</summary>
internal sealed class GroupProgress(uint group)
{
    /// <summary>The group.</summary>
    public uint Group => group;

    /// <summary>Every change up to here was sent to all watches that had begun.</summary>
    public ChangePoint Point { get; set; }

    /// <summary>The number of the newest progress; 0 before the first.</summary>
    public ulong Number { get; set; }

    /// <summary>When the node had everything that was committed, as a timestamp; null: it does not know.</summary>
    public long? AsOf { get; set; }

    /// <summary>Where the transaction stands whose end is not known; group 0: there is none.</summary>
    public ChangePoint Open { get; set; }

    /// <summary>The number of that transaction in its entry.</summary>
    public uint OpenNumber { get; set; }

    /// <summary>Its events with the watches that they are for, in order.</summary>
    public List<(ServerWatch Watch, WatchEvent Event)> Pending { get; } = [];

    /// <summary>Bytes that its events take up.</summary>
    public long PendingBytes { get; set; }

    /// <summary>Nothing is known of the end of a transaction any longer: it comes again as a whole.</summary>
    public void DropOpen()
    {
        Open = default;
        PendingBytes = 0;
        Pending.Clear();
    }
}
