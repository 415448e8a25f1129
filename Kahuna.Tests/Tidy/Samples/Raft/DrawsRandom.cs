namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: randomness.</summary>
internal sealed class DrawsRandom
{
    public static int Draw() => Random.Shared.Next();
}
