namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: randomness under another name.</summary>
internal sealed class MakesGuid
{
    public static Guid Make() => Guid.NewGuid();
}
