namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: a hash whose seed differs from process to process.</summary>
internal sealed class HashesPerProcess
{
    public static int Hash(int a, int b) => HashCode.Combine(a, b);
}
