using Kahuna.Server.Partitions.Groups;
using Kahuna.Server.Partitions.Ports;

namespace Kahuna.Server.Partitions.Loops;

/// <summary>
/// Sees to a turn of the groups that hold their proposals, when they hold them no longer. Owned by one loop; the
/// scheduler's thread only signals.
/// </summary>
/// <param name="scheduler">Rings later.</param>
/// <param name="ring">Signals the loop.</param>
internal sealed class LoopAlarm(ITurnScheduler scheduler, Action ring)
{
    /// <summary>
    /// A part of a hold: groups whose holds began at other times share the alarm, and none waits for longer after its
    /// own.
    /// </summary>
    private const int DueMs = 2;

    private readonly List<Group> _groups = [];
    private bool _isSet;
    private bool _isDue;

    /// <summary>The group holds its proposals.</summary>
    public void Set(Group group)
    {
        if (!_groups.Contains(group))
        {
            _groups.Add(group);
        }

        if (!_isSet)
        {
            _isSet = true;
            scheduler.Later(Ring, DueMs);
        }
    }

    /// <summary>The time of some groups has come.</summary>
    public bool IsDue => Volatile.Read(ref _isDue);

    /// <summary>A turn begins: groups whose time has come have work in it.</summary>
    public void TakeDue(LoopGroups groups)
    {
        Volatile.Write(ref _isDue, false);
        _isSet = false;
        foreach (Group group in _groups)
        {
            groups.MarkDirty(group);
        }

        _groups.Clear();
    }

    private void Ring()
    {
        Volatile.Write(ref _isDue, true);
        ring();
    }
}
