using Kahuna.Client.Connection;

namespace Kahuna.Client.Locks;

/// <summary>
/// An alarm by a timer of the clock that the client was given. Owned by a <see cref="LeaseKeeper"/>; any thread.
/// </summary>
internal sealed class LeaseTimer : ILeaseAlarm
{
    private readonly ConnectionClock _clock;
    private readonly ITimer _timer;

    public LeaseTimer(ConnectionClock clock, TimeProvider time, Action wake)
    {
        _clock = clock;
        using (ExecutionContext.IsFlowSuppressed() ? default(AsyncFlowControl?) : ExecutionContext.SuppressFlow())
        {
            _timer = time.CreateTimer(static state => ((Action)state!)(), wake, Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
        }
    }

    /// <inheritdoc/>
    public void Set(long moment) =>
        // A whole number of milliseconds, so that it does not come before its time and has to be set again.
        _timer.Change(TimeSpan.FromMilliseconds(Math.Max(0, _clock.Ms(moment - _clock.Now)) + 1), Timeout.InfiniteTimeSpan);

    /// <inheritdoc/>
    public void Dispose() => _timer.Dispose();
}
