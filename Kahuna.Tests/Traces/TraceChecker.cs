using System.Globalization;

namespace Kahuna.Tests.Traces;

/// <summary>
/// Checks the events of all nodes of a cluster, in the order of their times, group by group. Owned by one check.
/// </summary>
/// <param name="voters">Number of nodes.</param>
/// <param name="keptEntries">What is remembered of each group, about.</param>
internal sealed class TraceChecker(int voters, ulong keptEntries = 1 << 18)
{
    private readonly SortedDictionary<uint, GroupChecker> _groups = [];
    private readonly Dictionary<int, string> _directories = [];
    private int _runs;
    private long _acknowledged;
    private long _writes;

    /// <summary>
    /// Throws <see cref="BrokenRuleException"/> for the first rule that is broken, and <see cref="TraceException"/> for
    /// a trace that contradicts itself or proves nothing.
    /// </summary>
    public void Check(IEnumerable<TraceEvent> events)
    {
        foreach (TraceEvent e in events)
        {
            if (e.Kind == TraceEventKind.Start)
            {
                Start(e);
                continue;
            }

            if (!_groups.TryGetValue(e.Group, out GroupChecker? group))
            {
                _groups[e.Group] = group = new GroupChecker(e.Group, voters, keptEntries);
            }

            group.Take(e);
            if (e.Kind == TraceEventKind.Acknowledged)
            {
                _acknowledged++;
                _writes += e.Writes;
            }
        }

        if (_groups.Values.All(static group => group.Leaders == 0 || group.Committed == 0))
        {
            throw new TraceException("the traces prove nothing: no node became leader, or nothing was committed");
        }
    }

    /// <summary>What was checked.</summary>
    public override string ToString() => string.Create(
        CultureInfo.InvariantCulture,
        $"{_directories.Count} nodes, {_runs} runs, {_groups.Count} groups, "
            + $"{_groups.Values.Sum(static group => group.Entries):N0} entries, "
            + $"{_groups.Values.Sum(static group => group.Leaders)} leaders, "
            + $"{_groups.Values.Sum(static group => group.Votes)} votes, {_acknowledged:N0} acknowledged "
            + $"entries with {_writes:N0} writes");

    private void Start(TraceEvent e)
    {
        if (e.Voters != voters)
        {
            throw new TraceException(e.Place, $"says {e.Voters} voters, and another start {voters}");
        }

        _runs++;
        bool lostDisk = _directories.TryGetValue(e.Node, out string? directory) && directory != e.Directory;
        _directories[e.Node] = e.Directory;
        foreach (GroupChecker group in _groups.Values)
        {
            group.Start(e.Node, lostDisk);
        }
    }
}
