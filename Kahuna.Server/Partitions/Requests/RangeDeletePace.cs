using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// How many steps of deletes of ranges a leader takes on. A step is a small command and a fraction of a millisecond of
/// work on every node, so an entry full of them would stop a partition for seconds. Owned by a
/// <see cref="WriteRules"/>; not thread-safe.
/// </summary>
internal sealed class RangeDeletePace
{
    /// <summary>Steps that may come at once.</summary>
    public const int StepsAtOnce = 8;

    /// <summary>The time in ms after which one more step may come.</summary>
    public const int MsPerStep = 1;

    private NodeTime _since;
    private long _left = StepsAtOnce;

    /// <summary>Takes a step, if one is left.</summary>
    public bool TryTake(NodeTime now)
    {
        _left = Math.Min(StepsAtOnce, _left + (Math.Max(0, now - _since) / MsPerStep));
        _since = now;
        if (_left == 0)
        {
            return false;
        }

        _left--;
        return true;
    }
}
