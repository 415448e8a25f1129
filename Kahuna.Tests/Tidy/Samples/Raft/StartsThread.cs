namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: a thread.</summary>
internal sealed class StartsThread
{
    public static void Start() => new Thread(() => { }).Start();
}
