namespace Kahuna.Tests.Client;

/// <summary>
/// A clock that stands still until a test moves it; timers fire inside <see cref="Advance"/>. Any thread.
/// </summary>
internal sealed class ManualTime : TimeProvider
{
    private readonly Lock _lock = new();
    private readonly List<ManualTimer> _timers = [];
    private long _nowMs = 1_000_000;

    /// <inheritdoc/>
    public override long TimestampFrequency => 1000;

    /// <summary>Called on the thread that reads the clock, before it gets the time.</summary>
    public Action? Looked { get; set; }

    /// <inheritdoc/>
    public override long GetTimestamp()
    {
        Looked?.Invoke();
        return Volatile.Read(ref _nowMs);
    }

    /// <inheritdoc/>
    public override DateTimeOffset GetUtcNow() => DateTimeOffset.UnixEpoch.AddMilliseconds(GetTimestamp());

    /// <inheritdoc/>
    public override ITimer CreateTimer(TimerCallback callback, object? state, TimeSpan dueTime, TimeSpan period)
    {
        ManualTimer timer = new(this, callback, state);
        timer.Change(dueTime, period);
        return timer;
    }

    /// <summary>
    /// Moves the clock step by step, so that what a timer sets in motion is due within the same span.
    /// </summary>
    public void Advance(TimeSpan span)
    {
        long until = GetTimestamp() + (long)span.TotalMilliseconds;
        while (GetTimestamp() < until)
        {
            Volatile.Write(ref _nowMs, Math.Min(until, GetTimestamp() + 5));
            ManualTimer[] due;
            lock (_lock)
            {
                due = [.. _timers.Where(timer => timer.DueMs <= _nowMs)];
                _timers.RemoveAll(timer => timer.DueMs <= _nowMs);
            }

            foreach (ManualTimer timer in due)
            {
                timer.Fire();
            }
        }
    }

    /// <summary>Moves the clock without a timer: what a process sees that stood still.</summary>
    public void Jump(TimeSpan span) => Interlocked.Add(ref _nowMs, (long)span.TotalMilliseconds);

    /// <summary>
    /// A timer is set for more than <paramref name="after"/> from now and at most <paramref name="until"/>.
    /// </summary>
    public bool HasTimer(TimeSpan after, TimeSpan until)
    {
        lock (_lock)
        {
            return _timers.Exists(timer =>
                timer.DueMs - _nowMs > after.TotalMilliseconds && timer.DueMs - _nowMs <= until.TotalMilliseconds);
        }
    }

    private sealed class ManualTimer(ManualTime time, TimerCallback callback, object? state) : ITimer
    {
        public long DueMs { get; private set; }

        public void Fire() => callback(state);

        public bool Change(TimeSpan dueTime, TimeSpan period)
        {
            lock (time._lock)
            {
                time._timers.Remove(this);
                if (dueTime != Timeout.InfiniteTimeSpan)
                {
                    DueMs = time.GetTimestamp() + (long)dueTime.TotalMilliseconds;
                    time._timers.Add(this);
                }
            }

            return true;
        }

        public void Dispose() => Change(Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);

        public ValueTask DisposeAsync()
        {
            Dispose();
            return ValueTask.CompletedTask;
        }
    }
}
