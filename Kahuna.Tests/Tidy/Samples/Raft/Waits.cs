namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: a task.</summary>
internal sealed class Waits
{
    public static async Task<int> Two() => 1 + await Task.FromResult(1);
}
