namespace Kahuna.Client.Locks;

/// <summary>
/// Cancels the tokens of lost leases. What an application has registered with them runs on threads of its own here, so
/// that it runs also when every thread of the pool is blocked. There are a few, which end when they have nothing to do;
/// where all of them are held up by such code, the pool takes over. Part of a <see cref="KahunaClient"/>; any thread.
/// </summary>
internal sealed class LossNotices
{
    /// <summary>
    /// Registered code that blocks holds up one thread; so many may do that before the pool is needed.
    /// </summary>
    private const int ThreadsMax = 8;

    private static readonly TimeSpan s_idleMax = TimeSpan.FromSeconds(5);

    private readonly object _monitor = new();
    private readonly Queue<CancellationTokenSource> _queue = new();
    private int _threads;
    private int _idle;

    /// <summary>
    /// Cancels a token. It is cancelled when this returns; what is registered with it runs on another thread.
    /// </summary>
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

    /// <summary>Writes of a forgotten lease to the application's logger on a thread of the pool: it may block.</summary>
    public static void LogOnPool(HeldLease lease) => ThreadPool.UnsafeQueueUserWorkItem(static forgotten => forgotten.LogForgotten(), lease, preferLocal: false);

    /// <summary>False when no thread is free and there may be no more.</summary>
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
                // What the application has registered is its own.
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
