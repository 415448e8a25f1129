using Kahuna.Client.Connection;

namespace Kahuna.Client.Locks;

/// <summary>
/// An alarm by a thread of its own, which begins at its first use: it comes in time also when every thread of the pool
/// is blocked, where timers do not. Owned by a <see cref="LeaseKeeper"/>; any thread. Its monitor is not held while it
/// wakes.
/// </summary>
internal sealed class LeaseThread(ConnectionClock clock, Action wake) : ILeaseAlarm
{
    // A wait does not count the time for which the machine is suspended; the clock may. So it looks again this soon.
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

    /// <summary>The thread ends, after what it is just doing.</summary>
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

    /// <summary>False when it is over.</summary>
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

                // Rounded up, so that it does not come before its time and has to wait again.
                TimeSpan whole = TimeSpan.FromMilliseconds(Math.Ceiling(left.TotalMilliseconds));
                Monitor.Wait(_monitor, whole < s_waitMax ? whole : s_waitMax);
            }

            return false;
        }
    }
}
