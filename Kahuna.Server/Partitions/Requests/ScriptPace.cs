using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// How much work of scripts a leader takes on, in steps of the interpreter. A script is a small command and may be some
/// milliseconds of work on every node, so an entry full of them would stop a partition for seconds. Owned by a
/// <see cref="WriteRules"/>; not thread-safe.
/// </summary>
internal sealed class ScriptPace
{
    /// <summary>Steps that may come at once, and part of one script beyond them.</summary>
    public const int StepsAtOnce = 50_000;

    /// <summary>Steps that come back in a millisecond: about half of it on a slow machine.</summary>
    public const int StepsPerMs = 2_500;

    private NodeTime _since;
    private long _left = StepsAtOnce;

    /// <summary>
    /// Takes a script, unless those before it have used up the steps. One that needs more than are left makes the next
    /// ones wait longer.
    /// </summary>
    public bool TryTake(NodeTime now, long steps)
    {
        _left = Math.Min(StepsAtOnce, _left + (Math.Max(0, now - _since) * StepsPerMs));
        _since = now;
        if (_left <= 0)
        {
            return false;
        }

        _left -= steps;
        return true;
    }
}
