namespace Kahuna.Tests.Simulation.Nodes;

/// <summary>
/// A disk whose operations do not end for a while, and do not fail either. What uses it waits, as a thread would inside
/// a system call. Owned by one node.
/// </summary>
internal sealed class HungDisk(SimNode node)
{
    private readonly List<(int Life, Action Action)> _waiting = [];
    private bool _isHung;

    public bool IsHung => _isHung;

    /// <summary>Operations do not end any more, or those that were begun end, one after the other.</summary>
    public void Set(bool isHung)
    {
        _isHung = isHung;
        if (!isHung)
        {
            foreach ((int life, Action action) in _waiting)
            {
                node.Scheduler.After(node.SyncNs(), () => node.Do(life, action));
            }

            _waiting.Clear();
        }
    }

    /// <summary>Runs what uses the disk, now or when it moves again.</summary>
    public void Use(Action action)
    {
        if (_isHung)
        {
            _waiting.Add((node.Life, action));
        }
        else
        {
            action();
        }
    }
}
