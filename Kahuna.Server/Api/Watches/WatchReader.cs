using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Partitions.Ports;
using Kahuna.Server.Primitives;
using Kahuna.Wire;
using Kahuna.Wire.Buffers;
using Kahuna.Wire.Frames;
using Kahuna.Wire.Outcomes;
using Kahuna.Wire.Watches;

namespace Kahuna.Server.Api.Watches;

/// <summary>
/// The watches of one stream: takes requests, and makes the frames of what they are told from the node's change logs,
/// at the pace at which it is asked for frames. Nothing waits here for a slow reader: its cursors stay behind, and it
/// is told when changes are gone. Never waits; one thread at a time. A given order of calls makes the same frames.
/// </summary>
internal sealed class WatchReader : IDisposable
{
    /// <summary>Bytes of the log to look at in one step.</summary>
    private const int ChunkBytes = 64 << 10;

    /// <summary>Bytes of the log to look at before others have their turn: less than a millisecond.</summary>
    private const int SliceBytes = 1 << 20;

    private readonly Dictionary<uint, Watch> _watches = [];
    private readonly WatchLevel _persistent;
    private readonly WatchLevel _ephemeral;
    private readonly WatchCursor[] _cursors;
    private readonly WatchRequests _requests;
    private readonly IWatchDispatch? _dispatch;
    private readonly WatchAccess? _access;
    private readonly WatchNotices _notices = new();
    private readonly ChangeFrame _changes = new();
    private ByteBuffer? _records;
    private int _next;
    private long _number;

    /// <summary>A stream without watches.</summary>
    /// <param name="logs">The node's change logs.</param>
    /// <param name="memory">The node's memory for watches; null: not counted.</param>
    /// <param name="dispatch">Says which groups have news for the stream; null: each is looked at.</param>
    /// <param name="access">What may be watched; null: everything.</param>
    public WatchReader(
        ChangeLogs logs, WatchMemory? memory = null, IWatchDispatch? dispatch = null, WatchAccess? access = null)
    {
        (_dispatch, _access) = (dispatch, access);
        _cursors =
        [
            .. Enumerable.Range(0, logs.Count)
                .Where(index => logs[index] is not null)
                .Select(index => new WatchCursor(logs[index]!, index)),
        ];
        _persistent = new WatchLevel(
            Durability.Persistent, Array.FindAll(_cursors, static cursor => !cursor.Log.Group.IsEphemeral));
        _ephemeral = new WatchLevel(
            Durability.Ephemeral, Array.FindAll(_cursors, static cursor => cursor.Log.Group.IsEphemeral));
        _requests = new WatchRequests(memory);
    }

    /// <summary>Number of watches.</summary>
    public int Count => _watches.Count;

    /// <summary>
    /// A request may be taken now. Otherwise frames are to be made first: a transaction was sent in part.
    /// </summary>
    public bool MayTake => !Array.Exists(_cursors, static cursor => cursor.IsInTransaction);

    /// <summary>
    /// Begins or ends a watch. A watch that is refused is told so by a notice. Returns why the stream must end; null:
    /// it goes on.
    /// </summary>
    public string? Take(scoped in WatchRequest request)
    {
        InvariantException.Require(MayTake, "requests are taken between transactions");
        if (request.Operation == WatchOperation.End)
        {
            if (_watches.Remove(request.Id, out Watch? ended))
            {
                End(ended);
            }

            return null;
        }

        if (_watches.ContainsKey(request.Id))
        {
            return $"Watch {request.Id} has begun already, so the stream ends. An id can be used again when its watch "
                + "has ended.";
        }

        WatchLevel level = LevelOf(request.Durability);
        if (_access?.Refuse(request.Durability, request.Scope, request.Name) is { } missing)
        {
            _notices.Refuse(request.Id, OutcomeStatus.PermissionDenied, missing);
            return null;
        }

        if (_requests.Refuse(in request, level, _watches.Count) is { } refusal)
        {
            _notices.Refuse(request.Id, refusal.Status, refusal.Sentence);
            return null;
        }

        Begin(in request, level);
        return null;
    }

    /// <summary>Ends the watches to which the caller has lost the right, before anything else is told.</summary>
    public void EndForbidden()
    {
        foreach (Watch watch in _watches.Values.ToArray())
        {
            WatchLevel level = watch.Level;
            if (_access!.Refuse(level.Durability, watch.Filter.Scope, watch.Filter.Name) is { } missing)
            {
                _watches.Remove(watch.Id);
                End(watch);
                _notices.Forbid(watch.Id, missing);
            }
        }
    }

    /// <summary>The stream is to be told how far it is, in each group whose keys it watches.</summary>
    public void RequestProgress()
    {
        foreach (WatchCursor cursor in _cursors)
        {
            cursor.IsProgressDue = true;
        }
    }

    /// <summary>Changes in the frame that was made last.</summary>
    public int Changes => _changes.Count;

    /// <summary>Makes the next frame, complete, in an empty buffer.</summary>
    /// <param name="frame">Takes the frame.</param>
    /// <param name="now">The node's time.</param>
    public WatchFill Fill(ByteBuffer frame, NodeTime now)
    {
        bool isLeft = false;
        _changes.Begin();
        try
        {
            for (int i = 0; i < _cursors.Length; i++)
            {
                if (_notices.Count > 0)
                {
                    _notices.Write(frame);
                    return WatchFill.Frame;
                }

                WatchCursor cursor = _cursors[_next];
                _next = (_next + 1) % _cursors.Length;
                WatchLevel level = cursor.Log.Group.IsEphemeral ? _ephemeral : _persistent;
                if (level.Count > 0 && FillFrom(level, cursor, frame))
                {
                    return WatchFill.Frame;
                }

                isLeft |= level.Count > 0 && cursor.IsReading;
            }

            if (_notices.Count > 0)
            {
                _notices.Write(frame);
                return WatchFill.Frame;
            }

            return WriteProgress(frame, now) ? WatchFill.Frame : isLeft ? WatchFill.Later : WatchFill.Nothing;
        }
        finally
        {
            _records?.Return();
            _records = null;
            _changes.Return();
        }
    }

    /// <summary>Ends all watches.</summary>
    public void Dispose()
    {
        foreach (Watch watch in _watches.Values)
        {
            End(watch);
        }

        _watches.Clear();
    }

    private WatchLevel LevelOf(Durability durability) =>
        durability == Durability.Ephemeral ? _ephemeral : _persistent;

    private void Begin(scoped in WatchRequest request, WatchLevel level)
    {
        Filter<Watch>? filter = level.Filters.Find(request.Scope, request.Name);
        byte[] name = filter?.Name ?? request.Name.ToArray();
        Watch watch = new(request.Id, level, (request.Flags & WatchFlags.WithValues) != 0)
        {
            Number = ++_number,
            Bytes = WatchMemory.BytesOf(in request),
        };
        _requests.Memory?.Add(watch.Bytes);
        if (filter is null)
        {
            // First of all the node looks for changes of these keys: what it finds later is behind what is read below.
            _dispatch?.Add(level.Durability, request.Scope, name);
            filter = level.Filters.Add(request.Scope, name, watch);
        }

        bool isFirst = level.Count == 0;
        watch.Starts = _requests.StartsOf(in request, level);
        level.Add(watch, filter);
        _watches.Add(request.Id, watch);
        foreach (WatchCursor cursor in level.Cursors)
        {
            ChangePoint start = watch.Starts[cursor.Log.Group.Partition];
            if (isFirst)
            {
                cursor.Begin(start);
            }
            else
            {
                _ = cursor.IsReading || HasNews(cursor);
                cursor.Join(start, watch.Number);
            }
        }

        _notices.Add(WatchNoticeCode.Begun, request.Id, default);
    }

    private void End(Watch watch)
    {
        _requests.Memory?.Remove(watch.Bytes);
        if (watch.Level.Remove(watch))
        {
            _dispatch?.Remove(watch.Level.Durability, watch.Filter.Scope, watch.Filter.Name);
        }
    }

    /// <summary>
    /// There is something to read: it begins. Otherwise the cursor moves over what does not concern the stream.
    /// </summary>
    private bool HasNews(WatchCursor cursor)
    {
        bool hasNews = true;
        if (_dispatch is not null)
        {
            hasNews = _dispatch.TakeNews(cursor.Index, cursor.Hops, out ChangeCursor passed);
            if (passed.Point > cursor.Place.Point)
            {
                cursor.Place = passed;
                cursor.Pass();
            }

            if (!cursor.IsSettled)
            {
                cursor.Hops.Clear();
            }
        }

        cursor.IsReading = hasNews
            || (cursor.IsProgressDue && cursor.Place.Point < cursor.Log.Status.Applied);
        return cursor.IsReading;
    }

    /// <summary>Makes a frame of the changes of one group. False: there is none now.</summary>
    private bool FillFrom(WatchLevel level, WatchCursor cursor, ByteBuffer frame)
    {
        if (!cursor.IsReading && !HasNews(cursor))
        {
            return false;
        }

        _records ??= ByteBuffer.Rent();
        _changes.Begin();
        for (int looked = 0; cursor.IsReading && looked < SliceBytes && _notices.Count == 0; looked += _records.Length)
        {
            _records.Length = 0;
            ChangeLogStatus status = cursor.Log.Status;
            bool wasSettled = cursor.IsSettled;
            bool hops = cursor.Hops.TryTake(out ChangeCursor hop);
            if (hops)
            {
                cursor.HopTo(in hop);
            }

            ChangeCursor from = cursor.Place;
            switch (cursor.Log.Read(ref cursor.Place, _records, hops ? 1 : ChunkBytes))
            {
                case ChangeRead.Compacted:
                    cursor.Hops.Clear();
                    // Not the rest of an entry of which something is gone: it may be half of a transaction.
                    ChangePoint lost = cursor.Place.Point;
                    cursor.Place = new ChangeCursor(ChangePoint.After(lost.Group, lost.Epoch, lost.Index));
                    _requests.Memory?.CountLoss();
                    Interrupt(WatchNoticeCode.Compacted, level, cursor, wasSettled);
                    break;
                case ChangeRead.EpochBegan:
                    cursor.Hops.Clear();
                    Interrupt(WatchNoticeCode.EpochBegan, level, cursor, wasSettled);
                    break;
                case ChangeRead.More:
                    if (!Copy(level, cursor, in from, wasSettled, frame))
                    {
                        return _changes.End(frame);
                    }

                    if (hops && cursor.Hops is { Count: 0, IsCut: false } && !cursor.IsInTransaction)
                    {
                        cursor.HopTo(cursor.Hops.Complete);
                        EndReading(cursor);
                    }

                    break;
                default:
                    cursor.Hops.Clear();
                    Copy(level, cursor, in from, wasSettled, frame);
                    EndReading(cursor);
                    cursor.CaughtUpAt = status.CaughtUpAt;
                    break;
            }

            cursor.Pass();
            level.Settle();
        }

        return _changes.End(frame);
    }

    private static void EndReading(WatchCursor cursor)
    {
        cursor.IsReading = cursor.IsInTransaction = cursor.IsLagging = false;
        cursor.IsProgressDue |= cursor.HasSent;
        cursor.HasSent = false;
    }

    /// <summary>
    /// Adds what concerns the watches among the records that were read. False: the frame is full; the cursor stays
    /// behind what was added.
    /// </summary>
    private bool Copy(
        WatchLevel level, WatchCursor cursor, scoped in ChangeCursor from, bool isSettled, ByteBuffer frame)
    {
        (uint group, ulong epoch) = (cursor.Log.Group.Value, cursor.Place.Point.Epoch);
        ReadOnlySpan<byte> rest = _records!.Written;
        while (ChangeRecord.TryTake(ref rest, out ChangeRecord record))
        {
            ChangePoint point = new(group, epoch, record.Index, record.N);
            cursor.IsInTransaction = record.Transaction != 0;
            cursor.HasSent |= _changes.Add(level, isSettled ? null : cursor, in record, point, frame);
            if (_changes.Count > 0 && frame.Length >= Limits.FrameBytesTarget)
            {
                cursor.Place = from;
                cursor.Place.Point = point;
                cursor.Pass();
                TellLag(cursor);
                return false;
            }
        }

        return true;
    }

    /// <summary>
    /// The cursor has moved over changes that are not there: tells the watches that have not had them.
    /// </summary>
    private void Interrupt(WatchNoticeCode code, WatchLevel level, WatchCursor cursor, bool wasSettled)
    {
        ChangePoint point = cursor.Place.Point;
        cursor.IsInTransaction = false;
        int concerned = wasSettled
            ? level.Count : _watches.Values.Count(watch => watch.Level == level && cursor.Had(watch) < point);
        if (concerned == level.Count)
        {
            _notices.Add(code, 0, point);
            return;
        }

        foreach (Watch watch in _watches.Values)
        {
            if (watch.Level == level && cursor.Had(watch) < point)
            {
                _notices.Add(code, watch.Id, point);
            }
        }
    }

    private void TellLag(WatchCursor cursor)
    {
        if (!cursor.IsLagging && cursor.IsSettled && cursor.Log.IsNearLost(in cursor.Place))
        {
            cursor.IsLagging = true;
            _notices.Add(WatchNoticeCode.Lagging, 0, cursor.Place.Point);
        }
    }

    private bool WriteProgress(ByteBuffer frame, NodeTime now)
    {
        int count = 0;
        foreach (WatchCursor cursor in _cursors)
        {
            if (!cursor.IsProgressDue || cursor.IsReading
                || (cursor.Log.Group.IsEphemeral ? _ephemeral : _persistent).Count == 0)
            {
                continue;
            }

            ChangeLogStatus status = cursor.Log.Status;
            bool isAtEnd = status.Applied <= cursor.Place.Point;
            NodeTime caughtUpAt = isAtEnd ? status.CaughtUpAt : cursor.CaughtUpAt;
            if (count++ == 0)
            {
                Frame.Begin(frame, FrameKind.Progress);
            }

            new WatchProgress(
                isAtEnd ? status.Applied : cursor.Place.Point,
                caughtUpAt.Ms == 0 ? uint.MaxValue : (uint)Math.Clamp(now - caughtUpAt, 0, uint.MaxValue - 1L))
                .Write(frame);
            cursor.IsProgressDue = false;
        }

        if (count > 0)
        {
            Frame.End(frame, count);
        }

        return count > 0;
    }
}

/// <summary>What <see cref="WatchReader.Fill"/> has done. Values are not stored.</summary>
internal enum WatchFill
{
    /// <summary>There is nothing to say until there is news.</summary>
    Nothing,

    /// <summary>The frame is complete.</summary>
    Frame,

    /// <summary>There is more to look at; others should have their turn first.</summary>
    Later,
}
