using System.Text;
using Kahuna.Wire.Watches;

namespace Kahuna.Client.Watches;

/// <summary>
/// Hands changes on to the queues of watches: those of one transaction together, when its end is known. Part of the
/// <see cref="WatchBook"/> and used under its lock.
/// </summary>
/// <param name="leave">Takes a queue without room from its watch.</param>
internal sealed class WatchDeliveries(Action<WatchQueue> leave)
{
    /// <summary>
    /// A transaction has at most 4 MiB of items; what its watches are told of it is larger by what each event takes up.
    /// </summary>
    private const long PendingBytesMax = 64 << 20;

    private readonly List<WatchEvent> _group = [];
    private readonly List<WatchQueue> _full = [];

    /// <summary>The event of a change, without a position.</summary>
    public static WatchEvent EventOf(scoped in WatchedChange change, in ChangePoint point)
    {
        bool hasValue = change.Kind == WatchedChangeKind.Set
            && (change.Flags & (WatchedChangeFlags.NullValue | WatchedChangeFlags.ValueLeftOut)) == 0;
        return new WatchEvent(
            change.Kind switch
            {
                WatchedChangeKind.Set => WatchEventKind.Set,
                WatchedChangeKind.Deleted => WatchEventKind.Deleted,
                WatchedChangeKind.Expired => WatchEventKind.Expired,
                _ => WatchEventKind.Evicted,
            },
            null)
        {
            Key = Encoding.UTF8.GetString(change.Key),
            Value = hasValue ? new KahunaValue(change.Value.ToArray()) : KahunaValue.Null,
            Revision = new Revision(change.Revision),
            IsPreviousKept = (change.Flags & WatchedChangeFlags.PreviousKept) != 0,
            Place = point,
        };
    }

    /// <summary>A change comes next: a transaction that it is not part of has ended.</summary>
    public void Begin(LevelProgress level, GroupProgress group, in ChangePoint point, uint transaction)
    {
        if (group.Open.Group != 0
            && (group.Open.Epoch != point.Epoch
                || group.Open.Index != point.Index
                || group.OpenNumber != transaction))
        {
            Close(level, group);
        }

        if (transaction != 0)
        {
            group.Open = point;
            group.OpenNumber = transaction;
        }
    }

    /// <summary>Hands an event on to a watch, or keeps it until its transaction is complete.</summary>
    public void Deliver(LevelProgress level, GroupProgress group, ServerWatch watch, in WatchEvent told)
    {
        if (group.Open.Group == 0)
        {
            Refresh(level, watch, told.Place.Group);
            _group.Clear();
            _group.Add(told.Told(watch.Points, hasMore: false));
            HandOn(watch, told.Place);
            return;
        }

        group.Pending.Add((watch, told));
        group.PendingBytes += told.Bytes;
        if (group.PendingBytes > PendingBytesMax)
        {
            throw new InvalidDataException("a transaction is larger than transactions may be");
        }
    }

    /// <summary>The open transaction of a group is complete: it is handed on.</summary>
    public void Close(LevelProgress level, GroupProgress group)
    {
        // The watches in the order of their first events; each event is looked at once per watch.
        for (int i = 0; i < group.Pending.Count; i++)
        {
            ServerWatch watch = group.Pending[i].Watch;
            if (watch.IsOver || level.HasHad(watch, group, group.Pending[i].Event.Place))
            {
                continue;
            }

            HandOnTransaction(level, group, watch, i);
        }

        group.DropOpen();
    }

    /// <summary>Changes up to a point are missing, or void.</summary>
    public void TellLoss(LevelProgress level, ServerWatch watch, WatchEventKind kind, in ChangePoint point)
    {
        watch.Points = level.Of(watch).With(in point);
        watch.Run = default;
        watch.MayBeElsewhere = false;
        WatchEvent told = new(kind, watch.Points);
        for (int i = watch.Count - 1; i >= 0; i--)
        {
            WatchQueue queue = watch[i];
            if (queue.Start?.Covers(in point) is not true)
            {
                queue.Tell(in told);
            }
        }
    }

    /// <summary>Tells progress to a queue that asked for it, and the end of the state where it is due.</summary>
    public void TellProgress(LevelProgress level, ServerWatch watch, WatchQueue queue, WatchMoment now)
    {
        TellTarget(level, watch, queue);
        if (queue.Options.ProgressInterval is not { } interval
            || queue.ProgressAt > now.Timestamp
            || level.AsOf(watch) is not { } asOf)
        {
            return;
        }

        WatchPosition position = level.Of(watch);
        queue.ProgressAt = now.Timestamp + (long)(interval.TotalMilliseconds * now.PerMs);
        queue.TellProgress(new WatchEvent(
            WatchEventKind.Progress, queue.Start is { } start ? WatchPosition.Later(start, position) : position)
        {
            Details = new WatchEventDetails(
                null, TimeSpan.FromMilliseconds((now.Timestamp - asOf) / (double)now.PerMs), asOf),
        });
    }

    /// <summary>Tells the end of the state if the watch has had everything that the state shows.</summary>
    public void TellTarget(LevelProgress level, ServerWatch watch, WatchQueue queue)
    {
        if (queue.Target is not { } target)
        {
            return;
        }

        WatchPosition had = level.Of(watch);
        had = queue.Start is { } start ? WatchPosition.Later(start, had) : had;
        if (had.Covers(target))
        {
            queue.Target = null;
            queue.Tell(new WatchEvent(WatchEventKind.CurrentEnd, had));
        }
    }

    private void HandOnTransaction(LevelProgress level, GroupProgress group, ServerWatch watch, int first)
    {
        Refresh(level, watch, group.Group);
        WatchPosition before = watch.Run.Group == 0 ? watch.Points : watch.Points.With(watch.Run);
        _group.Clear();
        ChangePoint last = default;
        for (int i = first; i < group.Pending.Count; i++)
        {
            (ServerWatch other, WatchEvent told) = group.Pending[i];
            if (other == watch)
            {
                last = told.Place;
                _group.Add(told.Told(before, hasMore: true));
            }
        }

        _group[^1] = _group[^1].Told(before, hasMore: false);
        HandOn(watch, in last);
    }

    /// <summary>Hands the collected events on to the queues of a watch, and marks them as had.</summary>
    private void HandOn(ServerWatch watch, in ChangePoint last)
    {
        ReadOnlySpan<WatchEvent> events = System.Runtime.InteropServices.CollectionsMarshal.AsSpan(_group);
        WatchPosition? before = null;
        for (int i = 0; i < watch.Count; i++)
        {
            WatchQueue queue = watch[i];
            if (queue.Start is { } start)
            {
                if (start.Covers(in last))
                {
                    continue;
                }

                HandOnBehind(watch, queue, start, events);
            }
            else if (!queue.TryAdd(events))
            {
                before ??= watch.Run.Group == 0 ? watch.Points : watch.Points.With(watch.Run);
                queue.Lag(before);
                _full.Add(queue);
            }
        }

        watch.Run = last;
        watch.MayBeElsewhere = false;
        foreach (WatchQueue queue in _full)
        {
            leave(queue);
        }

        _full.Clear();
    }

    /// <summary>Hands events on to a queue that began later than its watch: its positions are ahead of the watch's.
    /// </summary>
    private void HandOnBehind(
        ServerWatch watch, WatchQueue queue, WatchPosition start, ReadOnlySpan<WatchEvent> events)
    {
        WatchPosition had = watch.Run.Group == 0 ? watch.Points : watch.Points.With(watch.Run);
        WatchPosition before = WatchPosition.Later(start, had);
        WatchEvent[] own = events.ToArray();
        for (int i = 0; i < own.Length; i++)
        {
            own[i] = own[i].Told(before, own[i].HasMore);
        }

        if (had.Covers(start))
        {
            queue.Start = null;
        }

        if (!queue.TryAdd(own))
        {
            queue.Lag(before);
            _full.Add(queue);
        }
    }

    /// <summary>
    /// Brings the points of a watch up to date before it gets a change of a group, unless the last one was of the same.
    /// </summary>
    private static void Refresh(LevelProgress level, ServerWatch watch, uint group)
    {
        if (watch.RefreshedAt != level.Version || (watch.Run.Group != 0 && watch.Run.Group != group))
        {
            watch.Points = level.Of(watch);
            watch.RefreshedAt = level.Version;
            watch.Run = default;
        }
    }
}
