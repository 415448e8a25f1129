using System.Text;

namespace Kahuna;

/// <summary>
/// The encoding of text on the wire: UTF-8 that rejects what it cannot encode, because a silently replaced character
/// would name another key. Stateless, any thread.
/// </summary>
internal static class Utf8Text
{
    /// <summary>UTF-8 without a byte order mark; throws on unpaired surrogates.</summary>
    public static UTF8Encoding Strict { get; } = new(encoderShouldEmitUTF8Identifier: false, throwOnInvalidBytes: true);
}
