using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Primitives;
using Kahuna.Server.State.Rows;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Watches;

namespace Kahuna.Server.Api.Watches;

/// <summary>
/// Makes a frame of the changes of one group that concern a stream. Owned by its <see cref="WatchReader"/>.
/// </summary>
internal sealed class ChangeFrame
{
    private readonly List<Filter<Watch>> _matches = [];
    private ByteBuffer? _ids;

    /// <summary>Number of changes in the frame.</summary>
    public int Count { get; private set; }

    /// <summary>Begins the next frame.</summary>
    public void Begin() => Count = 0;

    /// <summary>Completes the frame; false when there is nothing in it.</summary>
    public bool End(ByteBuffer frame)
    {
        if (Count > 0)
        {
            Frame.End(frame, Count);
        }

        return Count > 0;
    }

    /// <summary>Gives back what a frame needs besides its own bytes.</summary>
    public void Return()
    {
        _ids?.Return();
        _ids = null;
    }

    /// <summary>Adds a change, with the ids of all watches that it concerns. False: it concerns none.</summary>
    /// <param name="level">The watches.</param>
    /// <param name="cursor">Knows what each of them has had; null: none of them has had the change.</param>
    /// <param name="record">The change.</param>
    /// <param name="point">Where it stands.</param>
    /// <param name="frame">Takes it.</param>
    public bool Add(
        WatchLevel level, WatchCursor? cursor, scoped in ChangeRecord record, ChangePoint point, ByteBuffer frame)
    {
        _matches.Clear();
        level.Filters.Match(record.Key, _matches);
        if (_matches.Count == 0 || !CollectIds(cursor, point, out bool withValue))
        {
            return false;
        }

        if (Count++ == 0)
        {
            Frame.Begin(frame, FrameKind.Changes);
            WatchedChange.WriteFrameHeader(frame, point.Group, point.Epoch);
        }

        bool isLeftOut = record.Kind == ChangeKind.Written && !record.IsNull && !withValue;
        WatchedChange change = new()
        {
            Kind = KindOf(record.Kind),
            Flags = (record.IsNull ? WatchedChangeFlags.NullValue : 0)
                | (record.IsPreviousKept ? WatchedChangeFlags.PreviousKept : 0)
                | (isLeftOut ? WatchedChangeFlags.ValueLeftOut : 0),
            N = record.N,
            Transaction = record.Transaction,
            Index = record.Index,
            Revision = record.Revision,
            Watches = _ids!.Written,
            Key = record.Key,
            Value = isLeftOut ? default : record.Value,
        };
        change.Write(frame);
        return true;
    }

    private static WatchedChangeKind KindOf(ChangeKind kind) => kind switch
    {
        ChangeKind.Written => WatchedChangeKind.Set,
        ChangeKind.Deleted => WatchedChangeKind.Deleted,
        ChangeKind.Expired => WatchedChangeKind.Expired,
        ChangeKind.Evicted => WatchedChangeKind.Evicted,
        _ => throw new InvariantException($"a change log keeps no change {kind}"),
    };

    private bool CollectIds(WatchCursor? cursor, ChangePoint point, out bool withValue)
    {
        _ids ??= ByteBuffer.Rent();
        _ids.Length = 0;
        withValue = false;
        foreach (Filter<Watch> filter in _matches)
        {
            for (Watch? watch = filter.Value; watch is not null; watch = watch.Next)
            {
                if (cursor is null || point > cursor.Had(watch))
                {
                    WatchedChange.AppendWatch(_ids, watch.Id);
                    withValue |= watch.WithValues;
                }
            }
        }

        return _ids.Length > 0;
    }
}
