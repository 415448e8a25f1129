using Kahuna.Client.Connection;

namespace Kahuna.Client.Locks;

/// <summary>
/// Wakes the <see cref="LeaseKeeper"/> that owns it through a callback given at construction. Any thread.
/// </summary>
internal interface ILeaseAlarm : IDisposable
{
    /// <summary>
    /// Sets the alarm for a moment on the connection clock's scale; it may fire a little later. Replaces the previous
    /// setting.
    /// </summary>
    void Set(long moment);
}

/// <summary>An alarm on a timer of the client's clock. Owned by a <see cref="LeaseKeeper"/>; any thread.</summary>
internal sealed class LeaseTimer : ILeaseAlarm
{
    private readonly ConnectionClock _clock;
    private readonly ITimer _timer;

    public LeaseTimer(ConnectionClock clock, TimeProvider time, Action wake)
    {
        _clock = clock;
        using (ExecutionContext.IsFlowSuppressed() ? default(AsyncFlowControl?) : ExecutionContext.SuppressFlow())
        {
            _timer = time.CreateTimer(
                static state => ((Action)state!)(), wake, Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
        }
    }

    /// <inheritdoc/>
    public void Set(long moment) =>
        // Whole milliseconds, so that the timer does not fire early and have to be set again.
        _timer.Change(
            TimeSpan.FromMilliseconds(Math.Max(0, _clock.Ms(moment - _clock.Now)) + 1), Timeout.InfiniteTimeSpan);

    /// <inheritdoc/>
    public void Dispose() => _timer.Dispose();
}

/// <summary>
/// An alarm on a thread of its own, which starts at its first use. It fires in time even when every pool thread is
/// blocked, where timers do not. Owned by a <see cref="LeaseKeeper"/>; any thread. The monitor is not held during the
/// callback.
/// </summary>
internal sealed class LeaseThread(ConnectionClock clock, Action wake) : ILeaseAlarm
{
    // A wait does not count the time for which the machine is suspended, but the clock may. So it checks again this
    // soon.
    private static readonly TimeSpan s_waitMax = TimeSpan.FromMilliseconds(500);

    private readonly object _monitor = new();
    private long _moment = long.MaxValue;
    private bool _isRunning;
    private bool _isOver;

    /// <inheritdoc/>
    public void Set(long moment)
    {
        lock (_monitor)
        {
            _moment = moment;
            if (_isRunning)
            {
                Monitor.Pulse(_monitor);
            }
            else if (!_isOver)
            {
                _isRunning = true;
                new Thread(Run) { IsBackground = true, Name = "Kahuna leases" }.UnsafeStart();
            }
        }
    }

    /// <summary>Ends the thread after its current callback.</summary>
    public void Dispose()
    {
        lock (_monitor)
        {
            _isOver = true;
            Monitor.Pulse(_monitor);
        }
    }

    private void Run()
    {
        while (WaitForMoment())
        {
            wake();
        }
    }

    /// <summary>Waits for the set moment; false after <see cref="Dispose"/>.</summary>
    private bool WaitForMoment()
    {
        lock (_monitor)
        {
            while (!_isOver)
            {
                if (_moment == long.MaxValue)
                {
                    Monitor.Wait(_monitor);
                    continue;
                }

                TimeSpan left = clock.Span(_moment - clock.Now);
                if (left <= TimeSpan.Zero)
                {
                    _moment = long.MaxValue;
                    return true;
                }

                // Rounded up, so that the wait does not end early and have to be repeated.
                TimeSpan whole = TimeSpan.FromMilliseconds(Math.Ceiling(left.TotalMilliseconds));
                Monitor.Wait(_monitor, whole < s_waitMax ? whole : s_waitMax);
            }

            return false;
        }
    }
}
