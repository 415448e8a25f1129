using Kahuna.Benchmark.Timing;

namespace Kahuna.Benchmark.Pacing;

/// <summary>
/// The phases of one load in clock ticks: from <see cref="Start"/> to <see cref="MeasureFrom"/> warmup, then
/// measurement until <see cref="End"/>. A request belongs to the phase in which it (by intention) starts. Shared by all
/// workers; thread-safe.
/// </summary>
internal sealed class LoadWindow
{
    private long _end;
    private int _isSealed;

    public LoadWindow(long start, TimeSpan warmup, TimeSpan duration)
    {
        Start = start;
        MeasureFrom = start + Ticks.From(warmup);
        _end = MeasureFrom + Ticks.From(duration);
    }

    public long Start { get; }

    public long MeasureFrom { get; }

    /// <summary>No request starts at or after this time.</summary>
    public long End => Volatile.Read(ref _end);

    /// <summary>Whether the recorders are being read: an answer that comes now is no longer recorded.</summary>
    public bool IsSealed => Volatile.Read(ref _isSealed) != 0;

    /// <summary>Ends the load now instead of at its planned end.</summary>
    public void StopAt(long now) => Volatile.Write(ref _end, Math.Min(now, End));

    public void Seal() => Volatile.Write(ref _isSealed, 1);

    public bool Records(long start) => start >= MeasureFrom && !IsSealed;
}
