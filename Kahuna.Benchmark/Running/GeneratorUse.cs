namespace Kahuna.Benchmark.Running;

/// <summary>What the measurement cost this process and how well the machine let it run. Immutable.</summary>
internal sealed record GeneratorUse
{
    /// <summary>Share of one core that this process used, in percent: 200 is two cores.</summary>
    public double ProcessCpuPct { get; init; }

    /// <summary>Share of the whole machine that was busy, in percent; null where the system does not tell.</summary>
    public double? MachineCpuPct { get; init; }

    public int Collections { get; init; }

    public double PauseTotalMs { get; init; }

    public double PauseMaxMs { get; init; }

    public long AllocatedBytes { get; init; }

    /// <summary>
    /// How late a thread that only sleeps was woken: what GC pauses and a busy machine add to every latency.
    /// </summary>
    public double WakeLagP99Ms { get; init; }

    public double WakeLagMaxMs { get; init; }

    public double Seconds { get; init; }
}
