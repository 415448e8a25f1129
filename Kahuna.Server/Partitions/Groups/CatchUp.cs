using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Groups;

/// <summary>
/// How far a follower lags behind its leader, in time: the age of the newest commit index of the leader that it has not
/// reached. Owned by one <see cref="Group"/>; not thread-safe. Pure: its clock is the ticks that it is given.
/// </summary>
/// <param name="nearTicks">A follower that reaches what was committed so long ago has caught up.</param>
/// <param name="farTicks">
/// One that has not reached what was committed so long ago has fallen behind again. More, so that a busy follower does
/// not change sides all the time.
/// </param>
internal sealed class CatchUp(int nearTicks, int farTicks)
{
    private LogIndex _target;
    private int _age;
    private bool _hasTarget;

    /// <summary>The follower has what the leader had committed a moment ago.</summary>
    public bool IsCaughtUp { get; private set; }

    /// <summary>The log begins anew.</summary>
    public void Reset()
    {
        IsCaughtUp = false;
        _hasTarget = false;
    }

    /// <summary>A tick with a leader.</summary>
    /// <param name="reached">The last entry that is applied and on stable storage here.</param>
    /// <param name="committed">What the leader has told of its commit index.</param>
    public void Tick(LogIndex reached, LogIndex committed)
    {
        _age++;
        if (!_hasTarget || reached >= _target)
        {
            IsCaughtUp |= _hasTarget ? _age <= nearTicks : reached >= committed;
            _target = committed;
            _age = 0;
            _hasTarget = true;
        }

        IsCaughtUp &= _age <= farTicks;
    }
}
