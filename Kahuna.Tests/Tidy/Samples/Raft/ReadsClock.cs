namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: the wall clock.</summary>
internal sealed class ReadsClock
{
    public static long Now() => DateTime.UtcNow.Ticks;
}
