using System.Buffers;
using System.Buffers.Text;
using System.Diagnostics.CodeAnalysis;
using System.Security.Cryptography;

namespace Kahuna.Server.Access;

/// <summary>
/// The text of a token: <c>kahuna_</c>, the id, <c>_</c> and the secret, both as base64url without padding. Stateless,
/// any thread.
/// </summary>
internal static class TokenText
{
    /// <summary>How every token begins.</summary>
    public const string Prefix = "kahuna_";

    private const int IdBytes = 16;
    private const int SecretBytes = 32;
    private const int IdCharacters = 22;
    private const int SecretCharacters = 43;

    /// <summary>The text of a token.</summary>
    public static string Of(Guid id, byte[] secret) =>
        $"{Prefix}{Base64Url.EncodeToString(id.ToByteArray())}_{Base64Url.EncodeToString(secret)}";

    /// <summary>A new secret: 32 random bytes.</summary>
    public static byte[] NewSecret() => RandomNumberGenerator.GetBytes(SecretBytes);

    /// <summary>A new id: 16 random bytes.</summary>
    public static Guid NewId() => new(RandomNumberGenerator.GetBytes(IdBytes));

    /// <summary>The id as people see it: 32 hexadecimal digits in lower case.</summary>
    public static string IdText(Guid id) => id.ToString("N");

    /// <summary>Takes a text apart. False when it is no token; the parts may have '_' themselves.</summary>
    public static bool TryParse(string text, out Guid id, [NotNullWhen(true)] out byte[]? secret)
    {
        id = default;
        secret = null;
        Span<byte> idBytes = stackalloc byte[IdBytes];
        byte[] secretBytes = new byte[SecretBytes];
        if (text.Length != Prefix.Length + IdCharacters + 1 + SecretCharacters
            || !text.StartsWith(Prefix, StringComparison.Ordinal)
            || text[Prefix.Length + IdCharacters] != '_'
            || !TryDecode(text.AsSpan(Prefix.Length, IdCharacters), idBytes)
            || !TryDecode(text.AsSpan(Prefix.Length + IdCharacters + 1), secretBytes))
        {
            return false;
        }

        id = new Guid(idBytes);
        secret = secretBytes;
        return true;
    }

    /// <summary>What is kept of a secret.</summary>
    public static byte[] Hash(byte[] secret) => SHA256.HashData(secret);

    /// <summary>The secret is the token's. The time does not depend on where they differ.</summary>
    public static bool Verify(TokenRecord token, byte[] secret) =>
        CryptographicOperations.FixedTimeEquals(token.SecretHash, Hash(secret));

    private static bool TryDecode(ReadOnlySpan<char> text, Span<byte> target) =>
        Base64Url.DecodeFromChars(text, target, out int read, out int written) == OperationStatus.Done
            && read == text.Length
            && written == target.Length;
}
