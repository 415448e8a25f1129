using Kahuna.Server.Partitions.Groups;

namespace Kahuna.Server.Partitions.Loops;

/// <summary>
/// The groups of a loop that have pages of lists to read. A page may look at thousands of rows, so a turn reads a few
/// at its end, when everything else has left: other calls wait for these few, however many pages wait. The groups take
/// turns, and so do the clients of each. Owned by one loop; not thread-safe.
/// </summary>
/// <param name="groups">Number of groups of the node.</param>
/// <param name="guard">Stops a group that breaks a rule.</param>
internal sealed class PageTurns(int groups, GroupGuard guard)
{
    /// <summary>Pages of one turn: about a millisecond, if each looks at as many rows as it may.</summary>
    private const int PagesPerTurn = 2;

    private readonly Queue<Group> _waiting = new();
    private readonly bool[] _waits = new bool[groups];
    private bool _hasMore;

    /// <summary>Pages wait for the next turn.</summary>
    public bool HasMore => _waiting.Count > 0;

    /// <summary>The group has pages to read.</summary>
    public void Add(Group group)
    {
        if (!_waits[group.Index])
        {
            _waits[group.Index] = true;
            _waiting.Enqueue(group);
        }
    }

    /// <summary>Reads the pages of a turn.</summary>
    public void Serve()
    {
        for (int i = 0; i < PagesPerTurn && _waiting.TryDequeue(out Group? group); i++)
        {
            _waits[group.Index] = false;
            _hasMore = false;
            guard.Do(group, static (group, turns) => turns._hasMore = group.ServePage(), this);
            if (_hasMore)
            {
                Add(group);
            }
        }
    }
}
