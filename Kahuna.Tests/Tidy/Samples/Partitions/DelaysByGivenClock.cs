namespace Kahuna.Tests.Tidy.Samples.Partitions;

/// <summary>Positive control: the clock is given.</summary>
internal sealed class DelaysByGivenClock
{
    public static Task Start(TimeProvider clock) => Task.Delay(TimeSpan.FromSeconds(1), clock);
}
