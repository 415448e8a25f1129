using Kahuna.Server.Primitives;

namespace Kahuna.Server.Partitions.Requests;

/// <summary>
/// How much work of commands that are larger than they look a leader takes on. Owned by a <see cref="WriteRules"/>; not
/// thread-safe.
/// </summary>
/// <param name="atOnce">Units of work that may come at once, and part of one command beyond them.</param>
/// <param name="perMs">Units that come back in a millisecond.</param>
internal abstract class WorkPace(int atOnce, int perMs)
{
    private NodeTime _since;
    private long _left = atOnce;

    /// <summary>False: those before have used up the units, so that none is taken now.</summary>
    public bool HasAny(NodeTime now)
    {
        _left = Math.Min(atOnce, _left + (Math.Max(0, now - _since) * perMs));
        _since = now;
        return _left > 0;
    }

    /// <summary>
    /// Takes a command, unless those before it have used up the units. One that needs more than are left makes the next
    /// ones wait longer.
    /// </summary>
    public bool TryTake(NodeTime now, long units)
    {
        if (!HasAny(now))
        {
            return false;
        }

        _left -= units;
        return true;
    }
}

/// <summary>
/// How many items of prepared transactions a leader takes on: holding a key and letting it go takes some microseconds
/// on every node.
/// </summary>
internal sealed class PreparePace() : WorkPace(ItemsAtOnce, ItemsPerMs)
{
    /// <summary>Items that may come at once, and part of one command beyond them.</summary>
    public const int ItemsAtOnce = 4_000;

    /// <summary>Items that come back in a millisecond: about half of it.</summary>
    public const int ItemsPerMs = 100;
}

/// <summary>
/// How many rows the ranges of transactions may have that a leader takes on. A range is a few bytes, and may be
/// milliseconds of work on every node; the leader itself looks at its rows twice.
/// </summary>
internal sealed class RangeRowPace() : WorkPace(RowsAtOnce, RowsPerMs)
{
    /// <summary>Rows that may come at once, and part of one command beyond them.</summary>
    public const int RowsAtOnce = 16_384;

    /// <summary>Rows that come back in a millisecond: about half of it on a slow machine.</summary>
    public const int RowsPerMs = 1_000;

    /// <summary>Counted for each range, besides its rows: the way to its first one.</summary>
    public const int RowsPerRange = 8;
}
