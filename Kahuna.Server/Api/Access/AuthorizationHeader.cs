using System.Buffers;
using System.Text;
using Microsoft.Extensions.Primitives;

namespace Kahuna.Server.Api.Access;

/// <summary>
/// The parsed <c>authorization</c> header of a request: <c>Basic</c> (RFC 7617, in UTF-8) or <c>Bearer</c> (RFC 6750).
/// Immutable.
/// </summary>
internal sealed record AuthorizationHeader
{
    /// <summary>Longest header that is looked at: a JSON Web Token with many claims.</summary>
    public const int CharactersMax = 16 * 1024;

    private const string Basic = "Basic";

    private const string Bearer = "Bearer";

    private static readonly UTF8Encoding s_strict = new(false, throwOnInvalidBytes: true);

    /// <summary>The user of <c>Basic</c>; null with <c>Bearer</c>.</summary>
    public string? User { get; private init; }

    /// <summary>The password, or the token.</summary>
    public string Secret { get; private init; } = "";

    /// <summary>Parses the header; null, with the reason as a sentence, if it is malformed.</summary>
    public static AuthorizationHeader? Parse(StringValues values, out string reason)
    {
        reason = "";
        if (values.Count != 1)
        {
            reason = "The request has several authorization headers; send one.";
            return null;
        }

        string text = values[0] ?? "";
        int space = text.IndexOf(' ', StringComparison.Ordinal);
        string scheme = space < 0 ? text : text[..space];
        string rest = space < 0 ? "" : text[space..].Trim(' ');
        if (text.Length > CharactersMax)
        {
            reason = $"The authorization header is longer than {CharactersMax} characters.";
            return null;
        }

        if (string.Equals(scheme, Basic, StringComparison.OrdinalIgnoreCase))
        {
            AuthorizationHeader? basic = ParseBasic(rest);
            reason = basic is null
                ? "The authorization header is not 'Basic' and the base64 of user:password in UTF-8, without control "
                    + "characters."
                : "";
            return basic;
        }

        if (string.Equals(scheme, Bearer, StringComparison.OrdinalIgnoreCase)
            && rest.Length > 0
            && !rest.AsSpan().ContainsAnyExceptInRange('!', '~'))
        {
            return new AuthorizationHeader { Secret = rest };
        }

        reason = "The authorization header is neither 'Basic' with user and password nor 'Bearer' with a token.";
        return null;
    }

    /// <summary>Does not show the secret.</summary>
    public override string ToString() => User is null ? Bearer : $"{Basic} {User}";

    private static AuthorizationHeader? ParseBasic(string encoded)
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent(encoded.Length);
        try
        {
            if (!Convert.TryFromBase64String(encoded, buffer, out int count))
            {
                return null;
            }

            string text = s_strict.GetString(buffer, 0, count);
            int colon = text.IndexOf(':', StringComparison.Ordinal);
            return colon < 1 || text.Any(char.IsControl)
                ? null
                : new AuthorizationHeader { User = text[..colon], Secret = text[(colon + 1)..] };
        }
        catch (DecoderFallbackException)
        {
            return null;
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(buffer, clearArray: true);
        }
    }
}
