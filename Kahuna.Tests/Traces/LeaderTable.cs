namespace Kahuna.Tests.Traces;

/// <summary>The leaders of a group, by term. Owned by one <see cref="GroupChecker"/>.</summary>
internal sealed class LeaderTable
{
    private readonly Dictionary<ulong, (int Node, TracePlace Place)> _leaders = [];
    private readonly SortedList<ulong, ulong> _committedBefore = [];

    public int Count => _leaders.Count;

    /// <summary>The leader of the latest term, while its run lasts.</summary>
    public (int Node, ulong Term, TracePlace Place)? Newest { get; private set; }

    /// <summary>
    /// A node leads now, and so much was committed before. The other leader of the term, if there is one.
    /// </summary>
    public (int Node, TracePlace Place)? Add(TraceEvent leader, ulong committed)
    {
        if (!_leaders.TryAdd(leader.Term, (leader.Node, leader.Place)))
        {
            return _leaders[leader.Term];
        }

        if (_committedBefore.Count == 0 || leader.Term > _committedBefore.GetKeyAtIndex(_committedBefore.Count - 1))
        {
            _committedBefore.Add(leader.Term, committed);
            Newest = (leader.Node, leader.Term, leader.Place);
        }

        return null;
    }

    /// <summary>
    /// What was committed in terms before this one, as far as that can be told: a leader that comes late, after one of
    /// a later term, need not have what that one committed.
    /// </summary>
    public ulong CommittedBefore(ulong term)
    {
        for (int i = _committedBefore.Count - 1; i >= 0; i--)
        {
            if (i == 0 || _committedBefore.GetKeyAtIndex(i - 1) < term)
            {
                return _committedBefore.GetValueAtIndex(i);
            }
        }

        return 0;
    }

    /// <summary>A node's run has ended, and with it its leadership.</summary>
    public void Ended(int node)
    {
        if (Newest is { } newest && newest.Node == node)
        {
            Newest = null;
        }
    }
}
