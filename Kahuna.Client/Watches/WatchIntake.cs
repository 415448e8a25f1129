using System.Text;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;

namespace Kahuna.Client.Watches;

/// <summary>
/// Takes the frames of one stream after the other and hands on what they say. Part of the <see cref="WatchBook"/> and
/// used under its lock.
/// </summary>
/// <param name="watches">All watches, by their id.</param>
/// <param name="book">The owner.</param>
internal sealed class WatchIntake(Dictionary<uint, ServerWatch> watches, WatchBook book)
{
    private readonly List<WatchQueue> _reporting = [];
    private readonly WatchDeliveries _deliveries = new(book.Leave);
    private LevelProgress _persistent = new(Durability.Persistent);
    private LevelProgress _ephemeral = new(Durability.Ephemeral);

    /// <summary>Until this timestamp no queue is to be told progress.</summary>
    private long _reportingAt;

    /// <summary>Another node may have what this one has lost.</summary>
    public bool TriesOthers { get; set; }

    /// <summary>What the stream has told of the groups of a level.</summary>
    public LevelProgress Level(Durability durability) =>
        durability == Durability.Ephemeral ? _ephemeral : _persistent;

    /// <summary>Another stream begins, of which nothing is known.</summary>
    public void Restart()
    {
        _persistent = new LevelProgress(Durability.Persistent);
        _ephemeral = new LevelProgress(Durability.Ephemeral);
    }

    /// <summary>As <see cref="WatchBook.Deliver"/>.</summary>
    public bool Take(FrameKind kind, ReadOnlySpan<byte> body, int count, WatchMoment now)
    {
        switch (kind)
        {
            case FrameKind.Changes:
                TakeChanges(body, count);
                return true;
            case FrameKind.Progress:
                TakeProgress(body, count, now);
                return true;
            case FrameKind.Notices:
                return TakeNotices(body, count);
            default:
                throw new InvalidDataException(FormattableString.Invariant(
                    $"a frame has the kind {(byte)kind}, which nodes do not send on a stream of watches"));
        }
    }

    /// <summary>A queue that wants to be told progress is told from now on.</summary>
    public void Report(WatchQueue queue)
    {
        if (!queue.IsReporting && (queue.Target is not null || queue.Options.ProgressInterval is not null))
        {
            queue.IsReporting = true;
            _reporting.Add(queue);
        }

        _reportingAt = 0;
    }

    /// <summary>As <see cref="WatchBook.TellWhenAt"/>.</summary>
    public void TellWhenAt(WatchQueue queue, WatchPosition target)
    {
        queue.Target = target;
        if (queue.Source is { } watch)
        {
            _deliveries.TellTarget(Level(watch.Filter.Durability), watch, queue);
            Report(queue);
        }
    }

    /// <summary>Since when the node's view is complete, as a timestamp; null: unknown.</summary>
    public long? OldestAsOf()
    {
        long? persistent = _persistent.OldestAsOf();
        long? ephemeral = _ephemeral.OldestAsOf();
        return persistent is null || ephemeral is null ? persistent ?? ephemeral
            : Math.Min(persistent.Value, ephemeral.Value);
    }

    private static InvalidDataException Malformed(string what) => new($"a frame of {what} is malformed");

    private void TakeChanges(ReadOnlySpan<byte> body, int count)
    {
        if (!WatchedChange.TryReadFrameHeader(ref body, out uint groupId, out ulong epoch))
        {
            throw Malformed("changes");
        }

        LevelProgress level = Level(
            new ChangePoint(groupId, 0, 0, 0).IsEphemeral ? Durability.Ephemeral : Durability.Persistent);
        GroupProgress group = level.Group(groupId);
        for (int i = 0; i < count; i++)
        {
            if (!WatchedChange.TryRead(ref body, out WatchedChange change))
            {
                throw Malformed("changes");
            }

            ChangePoint point = new(groupId, epoch, change.Index, change.N);
            _deliveries.Begin(level, group, in point, change.Transaction);
            WatchEvent? told = null;
            for (int w = 0; w < change.WatchCount; w++)
            {
                if (watches.TryGetValue(change.Watch(w), out ServerWatch? watch)
                    && !level.HasHad(watch, group, in point))
                {
                    told ??= WatchDeliveries.EventOf(in change, in point);
                    _deliveries.Deliver(level, group, watch, told.Value);
                }
            }
        }

        if (!body.IsEmpty)
        {
            throw Malformed("changes");
        }
    }

    private void TakeProgress(ReadOnlySpan<byte> body, int count, WatchMoment now)
    {
        for (int i = 0; i < count; i++)
        {
            if (!WatchProgress.TryRead(ref body, out WatchProgress progress))
            {
                throw Malformed("progress");
            }

            ChangePoint point = progress.Point;
            LevelProgress level = Level(point.IsEphemeral ? Durability.Ephemeral : Durability.Persistent);
            GroupProgress group = level.Group(point.Group);
            if (group.Open.Group != 0 && point >= ChangePoint.After(point.Group, group.Open.Epoch, group.Open.Index))
            {
                _deliveries.Close(level, group);
            }
            else if (group.Open.Group != 0 && point >= group.Open with { N = group.OpenNumber - 1 })
            {
                // It lies within the transaction, of which nothing was handed on.
                continue;
            }

            level.Take(
                group,
                in point,
                progress.BehindMs == uint.MaxValue ? null : now.Timestamp - (progress.BehindMs * now.PerMs));
        }

        if (now.Timestamp >= _reportingAt)
        {
            TellProgress(now);
        }
    }

    private void TellProgress(WatchMoment now)
    {
        _reportingAt = long.MaxValue;
        for (int i = _reporting.Count - 1; i >= 0; i--)
        {
            WatchQueue queue = _reporting[i];
            if (queue.Source is not { } watch || (queue.Target is null && queue.Options.ProgressInterval is null))
            {
                _reporting.RemoveAt(i);
                queue.IsReporting = false;
                continue;
            }

            _deliveries.TellProgress(Level(watch.Filter.Durability), watch, queue, now);
            _reportingAt = Math.Min(_reportingAt, queue.Target is null ? queue.ProgressAt : 0);
        }
    }

    private bool TakeNotices(ReadOnlySpan<byte> body, int count)
    {
        for (int i = 0; i < count; i++)
        {
            if (!WatchNotice.TryRead(ref body, out WatchNotice notice))
            {
                throw Malformed("notices");
            }

            ServerWatch? watch = watches.GetValueOrDefault(notice.Watch);
            switch (notice.Code)
            {
                case WatchNoticeCode.Begun when watch is not null:
                    watch.IsBegun = true;
                    watch.Mark = watch.RefreshedAt = Level(watch.Filter.Durability).Version;
                    for (int q = 0; q < watch.Count; q++)
                    {
                        book.OnSettled(watch[q]);
                    }

                    break;
                case WatchNoticeCode.Refused when watch is not null:
                    book.Refuse(
                        watch,
                        (OutcomeStatus)Math.Min(notice.Status, byte.MaxValue),
                        Encoding.UTF8.GetString(notice.Text));
                    break;
                case WatchNoticeCode.PermissionDenied when watch is not null:
                    book.Refuse(watch, OutcomeStatus.PermissionDenied, Encoding.UTF8.GetString(notice.Text));
                    break;
                case WatchNoticeCode.Compacted or WatchNoticeCode.EpochBegan:
                    if (!TakeLoss(in notice, watch))
                    {
                        return false;
                    }

                    break;
            }
        }

        return true;
    }

    /// <summary>Changes are missing, or an epoch has begun. False: another node may have them.</summary>
    private bool TakeLoss(scoped in WatchNotice notice, ServerWatch? named)
    {
        ChangePoint point = notice.Point;
        LevelProgress level = Level(point.IsEphemeral ? Durability.Ephemeral : Durability.Persistent);
        GroupProgress group = level.Group(point.Group);
        List<ServerWatch> concerned = [];
        IEnumerable<ServerWatch> meant = notice.Watch == 0 ? watches.Values : named is null ? [] : [named];
        foreach (ServerWatch watch in meant)
        {
            if (watch.Filter.Durability == level.Durability
                && (watch.IsBegun || watch == named)
                && !level.HasHad(watch, group, in point))
            {
                concerned.Add(watch);
            }
        }

        bool isCompacted = notice.Code == WatchNoticeCode.Compacted;
        if (isCompacted && TriesOthers && concerned.Exists(static watch => watch.MayBeElsewhere))
        {
            return false;
        }

        group.DropOpen();
        foreach (ServerWatch watch in concerned)
        {
            _deliveries.TellLoss(
                level, watch, isCompacted ? WatchEventKind.Compacted : WatchEventKind.EpochBegan, in point);
        }

        return true;
    }
}
