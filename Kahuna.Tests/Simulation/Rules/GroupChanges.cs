using Kahuna.Wire.Watches;

namespace Kahuna.Tests.Simulation.Rules;

/// <summary>
/// All changes of one group, as the first node that has applied them told them: what every other node, and every
/// reader, has to be told too. A part that no node kept until it was looked at is a hole. Owned by one run.
/// </summary>
internal sealed class GroupChanges(uint group, string name, Action<string, string> breaks)
{
    public const string Rule = "changes are told once, in order and alike on every node";

    private readonly List<ToldChange> _all = [];
    private readonly List<(ChangePoint From, ChangePoint To)> _holes = [];
    private readonly List<(long AtNs, ChangePoint Point)> _reached = [];
    private ChangePoint _through = ChangePoint.After(group, 0, 0);

    /// <summary>In their order.</summary>
    public IReadOnlyList<ToldChange> All => _all;

    /// <summary>Up to here changes are known, but for the holes.</summary>
    public ChangePoint Through => _through;

    /// <summary>
    /// Nothing of an epoch is missing that a node has applied and told anybody. Between two epochs some node may still
    /// have applied what nobody was answered.
    /// </summary>
    public bool IsWhole => !_holes.Exists(static hole => hole.From.Epoch == hole.To.Epoch);

    /// <summary>Where the first node was at a moment of the run.</summary>
    public ChangePoint ThroughAt(long atNs)
    {
        (int low, int high) = (0, _reached.Count);
        while (low < high)
        {
            int middle = (low + high) / 2;
            (low, high) = _reached[middle].AtNs <= atNs ? (middle + 1, high) : (low, middle);
        }

        return low == 0 ? default : _reached[low - 1].Point;
    }

    /// <summary>A node's changes are complete from a point on.</summary>
    public void Begin(ChangePoint start)
    {
        if (start > _through)
        {
            _holes.Add((_through, start));
            _through = start;
        }
    }

    /// <summary>
    /// Somebody who was told everything up to a point is told a change. A node may be the first one to tell it.
    /// </summary>
    public ToldChange Tell(
        string who, ChangePoint after, ChangePoint point, ReadOnlySpan<byte> record, bool mayBeFirst = false)
    {
        int at = Find(point);
        if (point <= after)
        {
            breaks(Rule, $"{who} of {name}: {Text(point)} comes after {Text(after)}");
        }

        CheckNothingLeftOut(who, after, at);
        if (at < _all.Count && _all[at].Point == point)
        {
            if (!_all[at].Is(record))
            {
                breaks(Rule, $"{who} of {name}: {ToldChange.Of(point, record)} was told as {_all[at]}");
            }

            return _all[at];
        }

        ToldChange told = ToldChange.Of(point, record);
        if (!mayBeFirst || (point <= _through && !_holes.Exists(hole => hole.From < point && hole.To >= point)))
        {
            breaks(Rule, $"{who} of {name}: {told} was not told by those who have applied {Text(_through)}");
        }

        _all.Insert(at, told);
        return told;
    }

    /// <summary>Somebody who was told everything up to a point is told that nothing follows up to another.</summary>
    /// <param name="who">Who it is.</param>
    /// <param name="after">The last point that it was told of.</param>
    /// <param name="end">Up to where it was told everything.</param>
    /// <param name="firstNs">Now, for a node, which may be the first one to get there.</param>
    public void Reach(string who, ChangePoint after, ChangePoint end, long? firstNs = null)
    {
        if (end < after)
        {
            breaks(Rule, $"{who} of {name}: {Text(after)} was reached, and then {Text(end)}");
        }

        CheckNothingLeftOut(who, after, FindBehind(end));
        if (firstNs is { } nowNs && end > _through)
        {
            _through = end;
            _reached.Add((nowNs, end));
        }
    }

    /// <summary>The first change behind a point, by its place.</summary>
    public int FindBehind(ChangePoint point)
    {
        int at = Find(point);
        return at < _all.Count && _all[at].Point == point ? at + 1 : at;
    }

    /// <summary>The change at a point; null: there is none.</summary>
    public ToldChange? At(ChangePoint point)
    {
        int at = Find(point);
        return at < _all.Count && _all[at].Point == point ? _all[at] : null;
    }

    public static string Text(ChangePoint point) =>
        $"{point.Epoch}.{point.Index}.{(point.N == ChangePoint.AllOfEntry ? "all" : point.N)}";

    private void CheckNothingLeftOut(string who, ChangePoint after, int at)
    {
        if (at > 0 && _all[at - 1].Point > after)
        {
            breaks(Rule, $"{who} of {name}: {_all[at - 1]} is left out, after {Text(after)}");
        }
    }

    /// <summary>The first change at or behind a point.</summary>
    private int Find(ChangePoint point)
    {
        (int low, int high) = (0, _all.Count);
        while (low < high)
        {
            int middle = (low + high) / 2;
            if (_all[middle].Point < point)
            {
                low = middle + 1;
            }
            else
            {
                high = middle;
            }
        }

        return low;
    }
}
