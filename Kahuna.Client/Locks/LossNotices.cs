namespace Kahuna.Client.Locks;

/// <summary>
/// Cancels the tokens of lost leases. The application's callbacks run on a few dedicated threads here, so that they run
/// even when every pool thread is blocked. Idle threads end; when callbacks block all of them, the pool takes over.
/// Part of a <see cref="KahunaClient"/>; any thread.
/// </summary>
internal sealed class LossNotices
{
    /// <summary>Each blocking callback occupies one thread; this many may block before the pool is needed.</summary>
    private const int ThreadsMax = 8;

    private static readonly TimeSpan s_idleMax = TimeSpan.FromSeconds(5);

    private readonly object _monitor = new();
    private readonly Queue<CancellationTokenSource> _queue = new();
    private int _threads;
    private int _idle;

    /// <summary>Cancels a token. It is cancelled when this returns; its callbacks run on another thread.</summary>
    public void Cancel(CancellationTokenSource lost)
    {
        if (!TryHandOver(lost))
        {
            _ = lost.CancelAsync();
            return;
        }

        SpinWait spin = default;
        while (!lost.IsCancellationRequested)
        {
            spin.SpinOnce();
        }
    }

    /// <summary>Logs a dropped handle on a pool thread, because the application's logger may block.</summary>
    public static void LogOnPool(HeldLease lease) =>
        ThreadPool.UnsafeQueueUserWorkItem(static forgotten => forgotten.LogForgotten(), lease, preferLocal: false);

    /// <summary>False when no thread is free and the limit is reached.</summary>
    private bool TryHandOver(CancellationTokenSource lost)
    {
        lock (_monitor)
        {
            if (_queue.Count < _idle)
            {
                _queue.Enqueue(lost);
                Monitor.Pulse(_monitor);
                return true;
            }

            if (_threads == ThreadsMax)
            {
                return false;
            }

            _threads++;
            _queue.Enqueue(lost);
        }

        new Thread(Run) { IsBackground = true, Name = "Kahuna lost leases" }.UnsafeStart();
        return true;
    }

    private void Run()
    {
        while (TryTake(out CancellationTokenSource? lost))
        {
            try
            {
                lost.Cancel();
            }
            catch (AggregateException)
            {
                // The callbacks are the application's own.
            }
        }
    }

    private bool TryTake([System.Diagnostics.CodeAnalysis.NotNullWhen(true)] out CancellationTokenSource? lost)
    {
        lock (_monitor)
        {
            if (_queue.TryDequeue(out lost))
            {
                return true;
            }

            _idle++;
            Monitor.Wait(_monitor, s_idleMax);
            _idle--;
            if (_queue.TryDequeue(out lost))
            {
                return true;
            }

            _threads--;
            return false;
        }
    }
}
