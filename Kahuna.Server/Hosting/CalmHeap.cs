namespace Kahuna.Server.Hosting;

/// <summary>
/// Gives memory back when a busy time is over, which is when far less is allocated than before. The collector keeps what a peak has taken until enough is allocated again, which takes hours
/// on a quiet node and minutes under a usual load. Owned by the node: <see cref="Look"/> from one thread at a time.
/// </summary>
/// <param name="allocatedBytes">Bytes allocated since the process began.</param>
/// <param name="compactionBytes">Bytes that a compaction would look at, move or give back.</param>
/// <param name="collect">Collects beside everything else.</param>
/// <param name="compact">Moves what is left together and gives the rest back, while everything stands still.</param>
internal sealed class CalmHeap(Func<long> allocatedBytes, Func<long> compactionBytes, Action collect, Action compact)
{
    /// <summary>A node that allocates less than this between two looks is not busy, and leaves nothing worth a collection.</summary>
    private const long BusyBytes = 16L << 20;

    /// <summary>Less than this part of the peak is calm.</summary>
    private const int PeakPart = 4;

    /// <summary>So many calm looks in a row are no pause between two bursts.</summary>
    private const int CalmLooks = 3;

    /// <summary>Collections of a peak at the most, one at each look: each of them gives back a part of what lies free.</summary>
    private const int Collections = 12;

    /// <summary>A compaction of more would stop everything for longer than clients should notice.</summary>
    private const long CompactionMax = 256L << 20;

    private long _seen;

    /// <summary>Most that was allocated between two looks since memory was given back.</summary>
    private long _peak;

    private int _calm;

    /// <summary>Collections of the latest peak that are still to come, and what must not be allocated meanwhile.</summary>
    private int _left;
    private long _busyAgain;

    /// <summary>Called at a steady pace, some seconds apart.</summary>
    public void Look()
    {
        long allocated = allocatedBytes();
        long between = allocated - _seen;
        _seen = allocated;
        _peak = Math.Max(_peak, between);
        _calm = _peak >= BusyBytes && between < _peak / PeakPart ? _calm + 1 : 0;
        if (_calm == CalmLooks)
        {
            _left = Collections;
            _busyAgain = Math.Max(BusyBytes, _peak / PeakPart);
            _peak = between;
            _calm = 0;
        }

        if (between >= _busyAgain)
        {
            _left = 0;
        }

        if (_left > 0)
        {
            GiveBack();
        }
    }

    /// <summary>The first collection finds out what is left. Where that is little, one compaction gives back what more than ten background collections would.</summary>
    private void GiveBack()
    {
        if (_left < Collections && compactionBytes() <= CompactionMax)
        {
            _left = 0;
            compact();
            return;
        }

        _left--;
        collect();
    }
}
