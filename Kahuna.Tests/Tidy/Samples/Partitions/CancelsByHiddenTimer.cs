namespace Kahuna.Tests.Tidy.Samples.Partitions;

/// <summary>Negative control: a timer inside a token source.</summary>
internal sealed class CancelsByHiddenTimer
{
    public static CancellationTokenSource Start() => new(TimeSpan.FromSeconds(1));
}
