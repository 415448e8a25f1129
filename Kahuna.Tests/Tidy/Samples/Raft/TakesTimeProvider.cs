namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: a clock that is handed in is a clock as well.</summary>
internal sealed class TakesTimeProvider
{
    public static long Now(TimeProvider time) => time.GetTimestamp();
}
