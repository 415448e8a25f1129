namespace Kahuna.Tests.Tidy.Samples.Partitions;

/// <summary>Negative control: the clock port passed by.</summary>
internal sealed class TakesSystemClock
{
    public static long Now() => TimeProvider.System.GetTimestamp();
}
