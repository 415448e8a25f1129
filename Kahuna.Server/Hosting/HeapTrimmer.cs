namespace Kahuna.Server.Hosting;

/// <summary>
/// Returns memory to the system after a load peak, when the allocation rate has fallen far below it. The garbage
/// collector keeps the memory of a peak until enough is allocated again, which takes minutes under a usual load and
/// hours on a quiet node. Owned by the node: <see cref="Check"/> from one thread at a time.
/// </summary>
/// <param name="allocatedBytes">Bytes allocated since the process started.</param>
/// <param name="compactionBytes">Bytes that a compaction would scan, move or return.</param>
/// <param name="collect">Collects in the background.</param>
/// <param name="compact">Compacts the heap and returns the rest, while all threads are suspended.</param>
internal sealed class HeapTrimmer(Func<long> allocatedBytes, Func<long> compactionBytes, Action collect, Action compact)
{
    /// <summary>
    /// A node that allocates less than this between two checks is idle, and leaves nothing worth a collection.
    /// </summary>
    private const long BusyBytes = 16L << 20;

    /// <summary>Calm means less than the peak divided by this.</summary>
    private const int CalmDivisor = 4;

    /// <summary>Calm checks in a row that tell the end of a peak from a pause between bursts.</summary>
    private const int CalmChecks = 3;

    /// <summary>Collections after one peak, one per check: each of them returns a part of the free memory.</summary>
    private const int CollectionsMax = 12;

    /// <summary>
    /// Largest compaction; a larger one would suspend all threads for longer than clients should notice.
    /// </summary>
    private const long CompactionMax = 256L << 20;

    private long _allocated;

    /// <summary>Most bytes allocated between two checks since the last trim.</summary>
    private long _peak;

    private int _calm;

    /// <summary>
    /// Remaining collections of the latest peak, and the allocation between two checks that cancels them.
    /// </summary>
    private int _left;
    private long _busyAgain;

    /// <summary>Called periodically, every few seconds.</summary>
    public void Check()
    {
        long allocated = allocatedBytes();
        long between = allocated - _allocated;
        _allocated = allocated;
        _peak = Math.Max(_peak, between);
        _calm = _peak >= BusyBytes && between < _peak / CalmDivisor ? _calm + 1 : 0;
        if (_calm == CalmChecks)
        {
            _left = CollectionsMax;
            _busyAgain = Math.Max(BusyBytes, _peak / CalmDivisor);
            _peak = between;
            _calm = 0;
        }

        if (between >= _busyAgain)
        {
            _left = 0;
        }

        if (_left > 0)
        {
            Trim();
        }
    }

    /// <summary>
    /// The first collection shows what is left. If that is little, one compaction returns more than ten background
    /// collections would.
    /// </summary>
    private void Trim()
    {
        if (_left < CollectionsMax && compactionBytes() <= CompactionMax)
        {
            _left = 0;
            compact();
            return;
        }

        _left--;
        collect();
    }
}
