using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// What comes to a node while it is paused. Afterwards it goes on with it bit by bit, so that whole turns run in
/// between: what came over one connection in its order, but any connection first, as a process reads from its sockets.
/// Owned by one node.
/// </summary>
internal sealed class HeldActions(SimNode node, SimRandom random, long meanNs)
{
    private readonly List<(int Source, Queue<(int Life, Action Action)> Actions)> _sources = [];
    private int _next;

    /// <summary>Something is left of the pause: what comes now comes after it.</summary>
    public bool IsReleasing { get; private set; }

    public void Add(int life, int source, Action action)
    {
        int at = _sources.FindIndex(held => held.Source == source);
        if (at < 0)
        {
            at = _sources.Count;
            _sources.Add((source, new()));
        }

        _sources[at].Actions.Enqueue((life, action));
    }

    public void Clear()
    {
        IsReleasing = false;
        _sources.Clear();
    }

    public void Release(int life)
    {
        if (life != node.Life || node.IsPaused)
        {
            return;
        }

        IsReleasing = false;
        if (_sources.Count == 0)
        {
            return;
        }

        // Mostly what comes next over the same connection.
        _next = random.Chance(0.5) ? random.Next(_sources.Count) : Math.Min(_next, _sources.Count - 1);
        Queue<(int Life, Action Action)> actions = _sources[_next].Actions;
        (int Life, Action Action) held = actions.Dequeue();
        if (actions.Count == 0)
        {
            _sources.RemoveAt(_next);
        }

        node.Do(held.Life, held.Action);
        IsReleasing = life == node.Life;
        node.Scheduler.After((long)random.Exponential(meanNs), () => Release(life));
    }
}
