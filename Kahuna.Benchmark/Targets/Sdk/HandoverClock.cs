namespace Kahuna.Benchmark.Targets.Sdk;

/// <summary>The moment at which whoever has the lock began to release it, for whoever has it next. Any thread; the lock sees to it that there is one at a time.</summary>
internal sealed class HandoverClock
{
    private long _released;

    /// <summary>A holder begins to release the lock, at so many ticks.</summary>
    public void Releases(long ticks) => Volatile.Write(ref _released, ticks);

    /// <summary>When the holder before began to; 0 when there was none.</summary>
    public long Take() => Interlocked.Exchange(ref _released, 0);
}
