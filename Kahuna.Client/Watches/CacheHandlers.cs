using Microsoft.Extensions.Logging;

namespace Kahuna.Client.Watches;

/// <summary>
/// The handlers of a cache's changes. Owned by the <see cref="KeyValueCache"/>, whose loop calls them; any thread adds
/// and removes.
/// </summary>
internal sealed class CacheHandlers(ILogger logger)
{
    private readonly Lock _lock = new();
    private Action<CacheChange>[] _handlers = [];
    private volatile int _thread;

    /// <summary>A handler is being called by this thread.</summary>
    public bool IsCalling => _thread == Environment.CurrentManagedThreadId;

    /// <summary>Adds a handler; it is removed when the result is disposed.</summary>
    public IDisposable Add(Action<CacheChange> handler)
    {
        lock (_lock)
        {
            _handlers = [.. _handlers, handler];
        }

        return new Subscription(this, handler);
    }

    /// <summary>Calls the handlers, until the cache is stopped. What they throw is logged.</summary>
    public void Tell(CacheChange change, CancellationToken stop)
    {
        _thread = Environment.CurrentManagedThreadId;
        foreach (Action<CacheChange> handler in Volatile.Read(ref _handlers))
        {
            if (stop.IsCancellationRequested)
            {
                break;
            }

            try
            {
                handler(change);
            }
            catch (Exception failure)
            {
                WatchLog.HandlerFailed(logger, failure);
            }
        }

        _thread = 0;
    }

    private void Remove(Action<CacheChange> handler)
    {
        lock (_lock)
        {
            int at = Array.IndexOf(_handlers, handler);
            if (at >= 0)
            {
                _handlers = [.. _handlers[..at], .. _handlers[(at + 1)..]];
            }
        }
    }

    /// <summary>Removes a handler when it is disposed, once. Any thread.</summary>
    private sealed class Subscription(CacheHandlers handlers, Action<CacheChange> handler) : IDisposable
    {
        private int _isDisposed;

        public void Dispose()
        {
            if (Interlocked.Exchange(ref _isDisposed, 1) == 0)
            {
                handlers.Remove(handler);
            }
        }
    }
}
