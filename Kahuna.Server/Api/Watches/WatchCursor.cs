using Kahuna.Server.Partitions.Changes;
using Kahuna.Server.Primitives;
using Kahuna.Wire.Watches;

namespace Kahuna.Server.Api.Watches;

/// <summary>
/// Where a stream is in the changes of one group. Goes back when a watch begins at an earlier point; a change is then
/// given only to those watches that have not had it. Owned by its <see cref="WatchReader"/>.
/// </summary>
/// <param name="log">The changes of the group.</param>
/// <param name="index">The index of the group.</param>
internal sealed class WatchCursor(ChangeLog log, int index)
{
    /// <summary>
    /// The points from which the cursor went back, and which watches it had led there: those with a lesser number. The
    /// points descend, the numbers ascend.
    /// </summary>
    private readonly List<(long Number, ChangePoint Point)> _returns = [];

    /// <summary>Every watch began at this point or before it.</summary>
    private ChangePoint _lastStart;
    private ChangeCursor _place;

    public ChangeLog Log => log;

    public int Index => index;

    /// <summary>The place in the log.</summary>
    public ref ChangeCursor Place => ref _place;

    /// <summary>The end of what is applied was not reached since a watch began or a change concerned the stream.
    /// </summary>
    public bool IsReading { get; set; }

    /// <summary>Changes of a transaction were sent, and there may be more of it.</summary>
    public bool IsInTransaction { get; set; }

    /// <summary>Changes were sent since the last progress.</summary>
    public bool HasSent { get; set; }

    /// <summary>The stream is to be told how far it is.</summary>
    public bool IsProgressDue { get; set; }

    /// <summary>The stream was told that it lags, since it was at the end.</summary>
    public bool IsLagging { get; set; }

    /// <summary>When the node had everything, of what the stream has had; as of the last end.</summary>
    public NodeTime CaughtUpAt { get; set; }

    /// <summary>All watches have had everything up to the cursor, and nothing behind it.</summary>
    public bool IsSettled => _returns.Count == 0 && _place.Point >= _lastStart;

    /// <summary>Where the changes lie that concern the stream. Only of a settled cursor that reads.</summary>
    public WatchHops Hops { get; } = new();

    /// <summary>Number of points from which the cursor went back and that it has not reached again.</summary>
    public int Returns => _returns.Count;

    /// <summary>The first watch of the stream begins.</summary>
    public void Begin(ChangePoint start)
    {
        _place = new ChangeCursor(start);
        _lastStart = start;
        _returns.Clear();
        Hops.Clear();
        IsReading = true;
        (IsInTransaction, HasSent, IsProgressDue, IsLagging, CaughtUpAt) = (false, false, false, false, default);
    }

    /// <summary>One more watch begins.</summary>
    /// <param name="start">Where.</param>
    /// <param name="number">Its number.</param>
    public void Join(ChangePoint start, long number)
    {
        // What concerns the new watch is not among the places that are known.
        Hops.Clear();
        IsReading = true;
        _lastStart = start > _lastStart ? start : _lastStart;
        if (start < _place.Point)
        {
            Pass();
            _returns.Add((number, _place.Point));
            _place = new ChangeCursor(start);
        }
    }

    /// <summary>Goes to a place, but not back: what was read already is passed over there.</summary>
    public void HopTo(scoped in ChangeCursor place)
    {
        ChangePoint reached = _place.Point;
        _place = place;
        if (reached > place.Point)
        {
            _place.Point = reached;
        }
    }

    /// <summary>Forgets the points that the cursor has reached again.</summary>
    public void Pass()
    {
        while (_returns.Count > 0 && _returns[^1].Point <= _place.Point)
        {
            _returns.RemoveAt(_returns.Count - 1);
        }
    }

    /// <summary>
    /// A watch has had, or does not want, everything up to this point, which may lie behind the cursor. Default: it
    /// lies before the cursor.
    /// </summary>
    public ChangePoint Had(Watch watch)
    {
        ChangePoint start = watch.Starts is { } starts ? starts[log.Group.Partition] : default;
        ChangePoint reached = ReachedBefore(watch.Number);
        return start > reached ? start : reached;
    }

    /// <summary>The greatest point to which the cursor has led watches up to a number.</summary>
    private ChangePoint ReachedBefore(long number)
    {
        (int low, int high) = (0, _returns.Count);
        while (low < high)
        {
            int middle = (low + high) / 2;
            if (_returns[middle].Number > number)
            {
                high = middle;
            }
            else
            {
                low = middle + 1;
            }
        }

        return low < _returns.Count ? _returns[low].Point : default;
    }
}
