using System.Diagnostics.CodeAnalysis;
using System.Globalization;
using System.Security.Cryptography;
using System.Text;

namespace Kahuna.Client.Wire.Commands;

/// <summary>An idempotency key is a session of one number, named by the key's hash. Stateless, any thread.</summary>
internal static class IdempotencyKey
{
    public const int BytesMax = 256;

    /// <summary>The session of a key; false when it is too short or too long, and the sentence says so.</summary>
    public static bool TryHash(string key, out ulong session, [NotNullWhen(false)] out string? sentence)
    {
        int bytes = Encoding.UTF8.GetByteCount(key);
        sentence = bytes is 0 or > BytesMax ? string.Create(CultureInfo.InvariantCulture, $"the idempotency key is {bytes:N0} bytes; it must have 1 to {BytesMax}") : null;
        session = sentence is null ? BitConverter.ToUInt64(SHA256.HashData(Encoding.UTF8.GetBytes(key))) : 0;
        return sentence is null;
    }
}
