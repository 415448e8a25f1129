using Kahuna.Tests.Simulation.Engine;

namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>What comes to a node while it is paused. Afterwards it goes on with it in its order and bit by bit, so that whole turns run in between. Owned by one node.</summary>
internal sealed class HeldActions(SimNode node, SimRandom random, long meanNs)
{
    private readonly Queue<(int Life, Action Action)> _actions = new();

    /// <summary>Something is left of the pause: what comes now comes after it.</summary>
    public bool IsReleasing { get; private set; }

    public void Add(int life, Action action) => _actions.Enqueue((life, action));

    public void Clear()
    {
        IsReleasing = false;
        _actions.Clear();
    }

    public void Release(int life)
    {
        if (life != node.Life || node.IsPaused)
        {
            return;
        }

        IsReleasing = false;
        if (_actions.TryDequeue(out (int Life, Action Action) held))
        {
            node.Do(held.Life, held.Action);
            IsReleasing = life == node.Life;
            node.Scheduler.After((long)random.Exponential(meanNs), () => Release(life));
        }
    }
}
