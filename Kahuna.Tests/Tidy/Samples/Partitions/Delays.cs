namespace Kahuna.Tests.Tidy.Samples.Partitions;

/// <summary>Negative control: a hidden timer.</summary>
internal sealed class Delays
{
    public static Task Start() => Task.Delay(1);
}
