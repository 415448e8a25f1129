namespace Kahuna.Server.Hosting;

/// <summary>
/// Runs ticks of the node, one after the other, on a thread of its own: a timer would need one of the thread pool too,
/// which an idle node pays for, and which may be late when the pool is busy. Ticks that the thread has missed are left
/// out. Owned by the node.
/// </summary>
internal sealed class NodeTicker : IAsyncDisposable
{
    private readonly TaskCompletionSource _ended = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly object _gate = new();
    private readonly Action _tick;
    private readonly int _intervalMs;
    private bool _isOver;

    /// <summary>Starts; the first tick comes after an interval.</summary>
    /// <param name="name">The name of the thread.</param>
    /// <param name="tick">What to do. Its exceptions are its own business.</param>
    /// <param name="intervalMs">Time from tick to tick.</param>
    public NodeTicker(string name, Action tick, int intervalMs)
    {
        (_tick, _intervalMs) = (tick, intervalMs);
        new Thread(Run) { IsBackground = true, Name = name }.UnsafeStart();
    }

    /// <summary>Ends the ticks. Completes when the last one has.</summary>
    public ValueTask DisposeAsync()
    {
        lock (_gate)
        {
            _isOver = true;
            Monitor.Pulse(_gate);
        }

        return new ValueTask(_ended.Task);
    }

    private void Run()
    {
        long due = Environment.TickCount64;
        while (true)
        {
            long now = Environment.TickCount64;
            due = Math.Max(due + _intervalMs, now);
            if (!Wait((int)(due - now)))
            {
                _ended.SetResult();
                return;
            }

            _tick();
        }
    }

    /// <summary>False when the ticks end.</summary>
    private bool Wait(int ms)
    {
        lock (_gate)
        {
            if (!_isOver)
            {
                Monitor.Wait(_gate, ms);
            }

            return !_isOver;
        }
    }
}
