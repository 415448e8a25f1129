using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// How much work of scripts a leader takes on, in steps of the interpreter. A script is a small command and up to 2 ms
/// of work on every node, so an entry full of them would stop a partition for seconds. Owned by a
/// <see cref="WriteRules"/>; not thread-safe.
/// </summary>
internal sealed class ScriptPace
{
    /// <summary>Steps that may come at once: some 10 ms of work.</summary>
    public const int StepsAtOnce = 100_000;

    /// <summary>Steps that may come in a millisecond: about half of it.</summary>
    public const int StepsPerMs = 5_000;

    private NodeTime _since;
    private long _left = StepsAtOnce;

    /// <summary>Takes the steps of one script, if they are left.</summary>
    public bool TryTake(NodeTime now, int steps)
    {
        _left = Math.Min(StepsAtOnce, _left + (Math.Max(0, now - _since) * StepsPerMs));
        _since = now;
        if (_left < steps)
        {
            return false;
        }

        _left -= steps;
        return true;
    }
}
