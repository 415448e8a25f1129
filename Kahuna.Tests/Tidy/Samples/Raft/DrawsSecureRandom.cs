using System.Security.Cryptography;

namespace Kahuna.Tests.Tidy.Samples.Raft;

/// <summary>Negative control: randomness of the operating system.</summary>
internal sealed class DrawsSecureRandom
{
    public static int Draw() => RandomNumberGenerator.GetInt32(6);
}
