using System.Diagnostics;

namespace Kahuna.Tests.Cluster.Soak;

/// <summary>The one monotonic clock of a run: nanoseconds since it was made. Immutable; any thread.</summary>
internal sealed class SoakClock
{
    private readonly long _began = Stopwatch.GetTimestamp();

    public long NowNs => (long)((Int128)(Stopwatch.GetTimestamp() - _began) * 1_000_000_000 / Stopwatch.Frequency);

    public TimeSpan Elapsed => Stopwatch.GetElapsedTime(_began);
}
