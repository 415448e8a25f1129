using System.Diagnostics.CodeAnalysis;
using System.Globalization;
using System.Security.Cryptography;
using System.Text;

namespace Kahuna.Client.Wire.Commands;

/// <summary>
/// An idempotency key is a session of one number, named by the key's hash with the highest bit set, which no other session has: the outcome under a key is remembered for as long as the session, because whoever
/// asks again may be another process an hour later. Stateless, any thread.
/// </summary>
internal static class IdempotencyKey
{
    public const int BytesMax = 256;

    private const ulong Mark = 1UL << 63;

    /// <summary>True for the session of an idempotency key.</summary>
    public static bool IsKey(ulong session) => (session & Mark) != 0;

    /// <summary>The id of a session of an idempotency key from any number.</summary>
    public static ulong AsKey(ulong number) => number | Mark;

    /// <summary>The id of a session that numbers its commands from any number.</summary>
    public static ulong AsSession(ulong number) => number & ~Mark;

    /// <summary>The session of a key; false when it is too short or too long, and the sentence says so.</summary>
    public static bool TryHash(string key, out ulong session, [NotNullWhen(false)] out string? sentence)
    {
        int bytes = Encoding.UTF8.GetByteCount(key);
        sentence = bytes is 0 or > BytesMax ? string.Create(CultureInfo.InvariantCulture, $"the idempotency key is {bytes:N0} bytes; it must have 1 to {BytesMax}") : null;
        session = sentence is null ? AsKey(BitConverter.ToUInt64(SHA256.HashData(Encoding.UTF8.GetBytes(key)))) : 0;
        return sentence is null;
    }
}
