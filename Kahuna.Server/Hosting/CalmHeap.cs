namespace Kahuna.Server.Hosting;

/// <summary>
/// Gives memory back when busy times are over. The collector keeps what a peak has taken until enough is allocated again, which on a quiet node is hours. Owned by the node:
/// <see cref="Look"/> from one thread at a time.
/// </summary>
/// <param name="allocatedBytes">Bytes allocated since the process began.</param>
/// <param name="giveBack">Collects and gives back; called at most once per <see cref="Look"/>.</param>
internal sealed class CalmHeap(Func<long> allocatedBytes, Action giveBack)
{
    /// <summary>Less than this was allocated since the last time: it is not worth a collection.</summary>
    private const long WorthBytes = 256L << 20;

    /// <summary>Allocated between two looks by a node that has little to do.</summary>
    private const long CalmBytes = 32L << 20;

    /// <summary>So many calm looks in a row are no pause between two bursts.</summary>
    private const int CalmLooks = 3;

    private long _given;
    private long _seen;
    private int _calm;

    /// <summary>Called at a steady pace, some seconds apart.</summary>
    public void Look()
    {
        long allocated = allocatedBytes();
        _calm = allocated - _seen < CalmBytes ? _calm + 1 : 0;
        _seen = allocated;
        if (_calm >= CalmLooks && allocated - _given >= WorthBytes)
        {
            _given = allocated;
            giveBack();
        }
    }
}
