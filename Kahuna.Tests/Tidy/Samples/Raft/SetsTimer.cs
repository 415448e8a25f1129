namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: a timer.</summary>
internal sealed class SetsTimer
{
    public static object Make() => new Timer(_ => { });
}
