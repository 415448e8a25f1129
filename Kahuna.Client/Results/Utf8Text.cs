using System.Text;

namespace Kahuna.Client.Results;

/// <summary>The one encoding of text on the wire: UTF-8 that refuses what has no UTF-8, as a silently replaced character would name another key. Stateless, any thread.</summary>
internal static class Utf8Text
{
    /// <summary>UTF-8 without a byte order mark; throws on unpaired surrogates.</summary>
    public static UTF8Encoding Strict { get; } = new(encoderShouldEmitUTF8Identifier: false, throwOnInvalidBytes: true);
}
