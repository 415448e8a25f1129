using System.Security.Cryptography;
using System.Text;

namespace Kahuna.Server.Access;

/// <summary>Hashes passwords, and checks them: PBKDF2 with HMAC-SHA-256. Stateless, any thread.</summary>
internal static class Passwords
{
    /// <summary>Shortest password, in bytes of UTF-8.</summary>
    public const int BytesMin = 8;

    /// <summary>Longest password, in bytes of UTF-8.</summary>
    public const int BytesMax = 1024;

    /// <summary>Rounds of a new hash.</summary>
    public const int Iterations = 210_000;

    private const int SaltBytes = 16;
    private const int HashBytes = 32;

    /// <summary>The hash of a password, under a new salt.</summary>
    public static PasswordHash Hash(string password)
    {
        byte[] salt = RandomNumberGenerator.GetBytes(SaltBytes);
        return new PasswordHash(Iterations, salt, Derive(password, salt, Iterations, HashBytes));
    }

    /// <summary>
    /// The password is the hashed one. The time does not depend on where they differ. It takes as long as
    /// <see cref="PasswordHash.Iterations"/> says, some tens of milliseconds.
    /// </summary>
    public static bool Verify(PasswordHash hash, string password) =>
        hash.Hash.Length > 0
            && CryptographicOperations.FixedTimeEquals(
                hash.Hash, Derive(password, hash.Salt, hash.Iterations, hash.Hash.Length));

    private static byte[] Derive(string password, byte[] salt, int iterations, int bytes) =>
        Rfc2898DeriveBytes.Pbkdf2(
            Encoding.UTF8.GetBytes(password), salt, iterations, HashAlgorithmName.SHA256, bytes);
}
