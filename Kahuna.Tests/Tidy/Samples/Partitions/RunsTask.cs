namespace Kahuna.Tests.Tidy.Samples.Partitions;

/// <summary>Negative control: work that the owner's scheduler does not know.</summary>
internal sealed class RunsTask
{
    public static Task Start() => Task.Run(() => { });
}
