namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: a monotonic clock.</summary>
internal sealed class ReadsTickCount
{
    public static long Now() => Environment.TickCount64;
}
