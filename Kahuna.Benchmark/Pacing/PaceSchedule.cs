namespace Kahuna.Benchmark.Pacing;

/// <summary>
/// When each request of an open loop is due. Computed from the request's number, in integers of 128 bits, so that no
/// error adds up over a run of any length. A value; any thread.
/// </summary>
internal readonly struct PaceSchedule
{
    private readonly long _start;
    private readonly long _rate;
    private readonly long _ticksPerSecond;

    /// <summary>
    /// Request 0 is due at <paramref name="start"/>; <paramref name="rate"/> requests are due per second.
    /// </summary>
    public PaceSchedule(long start, long rate, long ticksPerSecond)
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(rate, 1);
        _start = start;
        _rate = rate;
        _ticksPerSecond = ticksPerSecond;
    }

    /// <summary>The first tick at which request <paramref name="number"/> is due.</summary>
    public long DueAt(long number) => _start + (long)((((Int128)number * _ticksPerSecond) + _rate - 1) / _rate);

    /// <summary>How many requests are due at or before <paramref name="now"/>.</summary>
    public long DueCount(long now) => now < _start ? 0 : (long)((Int128)(now - _start) * _rate / _ticksPerSecond) + 1;
}
