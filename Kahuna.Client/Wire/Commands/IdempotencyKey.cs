using System.Diagnostics.CodeAnalysis;
using System.Globalization;
using System.Security.Cryptography;
using System.Text;

namespace Kahuna.Wire.Commands;

/// <summary>
/// An idempotency key: a session of one number whose id is the key's hash with the highest bit set, which no other
/// session has. The outcome is remembered as long as the session, because the retry may come from another process an
/// hour later. Stateless, any thread.
/// </summary>
internal static class IdempotencyKey
{
    public const int BytesMax = 256;

    private const ulong Mark = 1UL << 63;

    /// <summary>True for the session of an idempotency key.</summary>
    public static bool IsKey(ulong session) => (session & Mark) != 0;

    /// <summary>Turns any number into the session id of an idempotency key.</summary>
    public static ulong AsKey(ulong number) => number | Mark;

    /// <summary>Turns any number into the id of an ordinary session.</summary>
    public static ulong AsSession(ulong number) => number & ~Mark;

    /// <summary>The session of a key. False when the key is too short or too long; the sentence says so.</summary>
    public static bool TryHash(string key, out ulong session, [NotNullWhen(false)] out string? sentence)
    {
        int bytes = Encoding.UTF8.GetByteCount(key);
        sentence = bytes is 0 or > BytesMax
            ? string.Create(
                CultureInfo.InvariantCulture, $"the idempotency key is {bytes:N0} bytes; it must have 1 to {BytesMax}")
            : null;
        session = sentence is null ? AsKey(BitConverter.ToUInt64(SHA256.HashData(Encoding.UTF8.GetBytes(key)))) : 0;
        return sentence is null;
    }
}
