namespace Kahuna.Tests;

/// <summary>
/// Counts what a piece of work allocates on this thread. A collection that another test causes retires the thread's
/// allocation buffer, whose rest then counts as allocated: so the work is done several times and the least counts.
/// </summary>
internal static class AllocatedBytes
{
    private const int Attempts = 5;

    public static long LeastOf(Action work)
    {
        long least = long.MaxValue;
        for (int i = 0; i < Attempts; i++)
        {
            long before = GC.GetAllocatedBytesForCurrentThread();
            work();
            least = Math.Min(least, GC.GetAllocatedBytesForCurrentThread() - before);
        }

        return least;
    }
}
