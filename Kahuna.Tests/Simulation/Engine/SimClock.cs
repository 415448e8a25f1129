namespace Kahuna.Tests.Simulation.Engine;

/// <summary>
/// A machine's clocks and timers over the run's time. The monotonic one begins anywhere and may run fast or slow; the
/// wall clock goes with it, and may also be set. Owned by one run.
/// </summary>
internal sealed class SimClock(SimScheduler scheduler, long offsetNs) : TimeProvider
{
    private long _baseNs = scheduler.NowNs;
    private long _baseLocalNs = scheduler.NowNs + offsetNs;
    private double _rate = 1;
    private long _wallNs = 1_700_000_000_000_000_000 - (offsetNs / 1_000);

    public override long TimestampFrequency => 1_000_000_000;

    /// <summary>
    /// Whose timers these are; told at each timer's creation. Null: timers run as they are due, and for ever.
    /// </summary>
    public Func<TimerOwner>? Owner { get; init; }

    /// <summary>How fast it runs.</summary>
    public double Rate => _rate;

    public override TimeZoneInfo LocalTimeZone => TimeZoneInfo.Utc;

    public override long GetTimestamp()
    {
        scheduler.CheckThread("asked for the time");
        return _baseLocalNs + (long)((scheduler.NowNs - _baseNs) * _rate);
    }

    public override DateTimeOffset GetUtcNow() => DateTimeOffset.UnixEpoch.AddTicks((_wallNs + GetTimestamp()) / 100);

    public override ITimer CreateTimer(TimerCallback callback, object? state, TimeSpan dueTime, TimeSpan period)
    {
        SimTimer timer = new(this, callback, state);
        timer.Change(dueTime, period);
        return timer;
    }

    /// <summary>From now on it runs at this rate.</summary>
    public void SetRate(double rate)
    {
        _baseLocalNs = GetTimestamp();
        _baseNs = scheduler.NowNs;
        _rate = rate;
    }

    /// <summary>Somebody sets the wall clock, forward or back.</summary>
    public void SetWall(long byNs) => _wallNs += byNs;

    /// <summary>The run's time that passes while this clock counts so much.</summary>
    public long ToRun(long localNs) => (long)(localNs / _rate);

    /// <summary>Who made a timer: whether it is still there, and what runs its code.</summary>
    public readonly record struct TimerOwner(Func<bool> Lives, Action<Action> Run);

    private sealed class SimTimer(SimClock clock, TimerCallback callback, object? state) : ITimer
    {
        private readonly TimerOwner? _owner = clock.Owner?.Invoke();
        private int _version;
        private SimScheduler Scheduler => clock.Scheduler;

        public bool Change(TimeSpan dueTime, TimeSpan period)
        {
            int version = ++_version;
            if (dueTime != Timeout.InfiniteTimeSpan)
            {
                Arm(version, dueTime, period);
            }

            return true;
        }

        public void Dispose() => _version++;

        public ValueTask DisposeAsync()
        {
            Dispose();
            return ValueTask.CompletedTask;
        }

        private void Arm(int version, TimeSpan due, TimeSpan period) =>
            Scheduler.After(clock.ToRun(due.Ticks * 100), () =>
        {
            if (version != _version || _owner is { } owner && !owner.Lives())
            {
                return;
            }

            if (period != Timeout.InfiniteTimeSpan && period != TimeSpan.Zero)
            {
                Arm(version, period, period);
            }

            if (_owner is { } by)
            {
                by.Run(() => callback(state));
            }
            else
            {
                callback(state);
            }
        });
    }

    private SimScheduler Scheduler => scheduler;
}
