namespace Kahuna.Tests.Client;

/// <summary>
/// A thread pool of which every thread is blocked, and which gets no more, until it is disposed. Owned by one test.
/// </summary>
internal sealed class StarvedPool : IDisposable
{
    private readonly ManualResetEventSlim _end = new();
    private readonly (int Workers, int Ports) _min;
    private readonly (int Workers, int Ports) _max;
    private volatile bool _hasServed;

    public StarvedPool()
    {
        ThreadPool.GetMinThreads(out _min.Workers, out _min.Ports);
        ThreadPool.GetMaxThreads(out _max.Workers, out _max.Ports);
        Assert.True(ThreadPool.SetMinThreads(Environment.ProcessorCount, _min.Ports));
        Assert.True(ThreadPool.SetMaxThreads(Environment.ProcessorCount, _max.Ports));

        // More than there can be threads from before the limit; the last one would serve whatever comes after them.
        int blockers = ThreadPool.ThreadCount + (4 * Environment.ProcessorCount);
        for (int i = 0; i < blockers; i++)
        {
            ThreadPool.UnsafeQueueUserWorkItem(static end => end.Wait(Wait.Longest * 4), _end, preferLocal: false);
        }

        ThreadPool.UnsafeQueueUserWorkItem(static pool => pool._hasServed = true, this, preferLocal: false);
    }

    /// <summary>No thread of the pool has come to what was queued last.</summary>
    public bool IsStarved => !_hasServed;

    public void Dispose()
    {
        _end.Set();
        ThreadPool.SetMaxThreads(_max.Workers, _max.Ports);
        ThreadPool.SetMinThreads(_min.Workers, _min.Ports);
    }
}
