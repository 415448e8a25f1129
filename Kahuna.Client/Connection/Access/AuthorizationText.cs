using System.Text;

namespace Kahuna.Client.Connection.Access;

/// <summary>
/// Makes the text of an authorization header: Basic (RFC 7617, with UTF-8) or Bearer (RFC 6750). Stateless; any thread.
/// No error repeats a secret.
/// </summary>
internal static class AuthorizationText
{
    private const int UserCharactersMax = 128;
    private const int PasswordBytesMax = 1024;

    /// <summary>Nodes refuse requests whose headers are larger than 32 KiB.</summary>
    private const int TokenCharactersMax = 16 * 1024;

    private static readonly UTF8Encoding s_utf8 = new(false, throwOnInvalidBytes: true);

    /// <summary>The header of a user and its password.</summary>
    /// <exception cref="FormatException">One of them cannot be sent.</exception>
    public static string OfPassword(string user, string password)
    {
        CheckUser(user);
        int bytes = ByteCount(password);
        return bytes is 0 or > PasswordBytesMax || password.Any(char.IsControl)
            ? throw new FormatException("the password must have 1 to 1,024 bytes of UTF-8 and no control characters")
            : "Basic " + Convert.ToBase64String(s_utf8.GetBytes(user + ":" + password));
    }

    /// <summary>The header of a token.</summary>
    /// <exception cref="FormatException">It cannot be sent.</exception>
    public static string OfToken(string? token) =>
        token is { Length: > 0 and <= TokenCharactersMax } && token.All(IsOfToken)
            ? "Bearer " + token
            : throw new FormatException(
                "the token must have 1 to 16,384 characters, each a letter or digit of ASCII or one of -._~+/=");

    /// <summary>Checks the name of a user.</summary>
    /// <exception cref="FormatException">It cannot be sent.</exception>
    public static void CheckUser(string user)
    {
        if (user.Length is 0 or > UserCharactersMax || ByteCount(user) == 0 || user.Any(char.IsControl)
            || user.Contains(':', StringComparison.Ordinal))
        {
            throw new FormatException("the user's name must have 1 to 128 characters, no control character and no ':'");
        }
    }

    private static bool IsOfToken(char c) =>
        char.IsAsciiLetterOrDigit(c) || c is '-' or '.' or '_' or '~' or '+' or '/' or '=';

    /// <summary>Bytes in UTF-8; 0 when it cannot be written as that.</summary>
    private static int ByteCount(string text)
    {
        try
        {
            return s_utf8.GetByteCount(text);
        }
        catch (EncoderFallbackException)
        {
            return 0;
        }
    }
}
