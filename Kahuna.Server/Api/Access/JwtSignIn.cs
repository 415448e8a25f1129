using System.Security.Cryptography;
using System.Text;
using Kahuna.Server.Access;
using Microsoft.IdentityModel.JsonWebTokens;
using Microsoft.IdentityModel.Tokens;

namespace Kahuna.Server.Api.Access;

/// <summary>
/// Checks JSON Web Tokens (RFC 7519) by the advice of RFC 8725: asymmetric signatures only, by a key of the issuer that
/// is of the algorithm's own kind; issuer, audience and expiry are required. Owned by the node; any thread.
/// </summary>
/// <param name="access">The users.</param>
/// <param name="settings">What a token must say.</param>
/// <param name="keys">The issuer's keys.</param>
/// <param name="time">The clock.</param>
internal sealed class JwtSignIn(AccessState access, JwtSettings settings, IJwtKeys keys, TimeProvider time)
{
    /// <summary>Tokens whose signatures are remembered as right; 1 MB.</summary>
    private const int RememberedMax = 4096;

    /// <summary>A name has at most 128 characters.</summary>
    private const int UserCharactersMax = 128;

    private const string Wrong =
        "The JSON Web Token is not valid: its signature, issuer, audience or time does not hold.";

    /// <summary>What clocks may differ by.</summary>
    private static readonly TimeSpan s_skew = TimeSpan.FromSeconds(30);

    /// <summary>
    /// No symmetric one: a public key must never serve as the secret of an HMAC. And never <c>none</c>.
    /// </summary>
    private static readonly string[] s_algorithms =
    [
        SecurityAlgorithms.RsaSha256, SecurityAlgorithms.RsaSha384, SecurityAlgorithms.RsaSha512,
        SecurityAlgorithms.RsaSsaPssSha256, SecurityAlgorithms.RsaSsaPssSha384, SecurityAlgorithms.RsaSsaPssSha512,
        SecurityAlgorithms.EcdsaSha256, SecurityAlgorithms.EcdsaSha384, SecurityAlgorithms.EcdsaSha512,
    ];

    private readonly JsonWebTokenHandler _handler = new() { MapInboundClaims = false };
    private readonly RecentCache<Digest, RightToken> _remembered = new(RememberedMax);

    /// <summary>Finds the user that a token names.</summary>
    /// <param name="text">The token.</param>
    /// <param name="address">Where from.</param>
    /// <param name="ct">Ends a wait for the issuer's keys.</param>
    public async ValueTask<SignIn> CheckAsync(string text, string address, CancellationToken ct)
    {
        Digest digest = Digest.From(SHA256.HashData(Encoding.UTF8.GetBytes(text)));
        IReadOnlyList<SecurityKey> known = keys.Current;
        if (!_remembered.TryGet(digest, out RightToken token)
            || !ReferenceEquals(token.Keys, known)
            || time.GetUtcNow().ToUnixTimeMilliseconds() >= token.ExpiresMs)
        {
            if (await LookAsync(text, known, ct).ConfigureAwait(false) is not { } right)
            {
                return SignInRefusal.Unauthenticated(Wrong);
            }

            token = right;
            _remembered.Set(digest, token);
        }

        return access.Book.FindUser(token.User) is { } user
            ? new Caller(access, user, CallerMethod.Jwt) { Address = address, ExpiresMs = token.ExpiresMs }
            : SignInRefusal.Unauthenticated("The JSON Web Token names no user of this cluster.", token.User);
    }

    private async ValueTask<RightToken?> LookAsync(
        string text, IReadOnlyList<SecurityKey> known, CancellationToken ct)
    {
        TokenValidationResult result = await ValidateAsync(text, known).ConfigureAwait(false);
        if (result.Exception is SecurityTokenInvalidSignatureException
            && await keys.RefreshAsync(ct).ConfigureAwait(false))
        {
            known = keys.Current;
            result = await ValidateAsync(text, known).ConfigureAwait(false);
        }

        return result.IsValid
            && result.SecurityToken is JsonWebToken token
            && token.TryGetPayloadValue(settings.UserClaim, out string? user)
            && user is { Length: > 0 and <= UserCharactersMax }
                ? new RightToken(
                    user,
                    new DateTimeOffset(token.ValidTo).ToUnixTimeMilliseconds() + (long)s_skew.TotalMilliseconds,
                    known)
                : null;
    }

    private Task<TokenValidationResult> ValidateAsync(string text, IReadOnlyList<SecurityKey> known) =>
        _handler.ValidateTokenAsync(text, new TokenValidationParameters
        {
            ValidAlgorithms = s_algorithms,
            ValidIssuer = settings.Issuer,
            ValidAudience = settings.Audience,
            IssuerSigningKeys = known,
            RequireSignedTokens = true,
            RequireExpirationTime = true,
            RequireAudience = true,
            ValidateIssuer = true,
            ValidateAudience = true,
            ValidateIssuerSigningKey = true,
            TryAllIssuerSigningKeys = true,
            ClockSkew = s_skew,
            LifetimeValidator = IsNow,
        });

    private bool IsNow(DateTime? from, DateTime? to, SecurityToken token, TokenValidationParameters parameters)
    {
        DateTime now = time.GetUtcNow().UtcDateTime;
        return to is { } end && now - s_skew < end && (from is not { } start || now + s_skew >= start);
    }

    /// <summary>What a valid token says, and by which keys it was found valid.</summary>
    private readonly record struct RightToken(string User, long ExpiresMs, IReadOnlyList<SecurityKey> Keys);
}

/// <summary>What a JSON Web Token must say. Immutable.</summary>
/// <param name="Issuer">Its <c>iss</c>.</param>
/// <param name="Audience">Its <c>aud</c>, or one of them.</param>
/// <param name="UserClaim">The claim with the user's name.</param>
internal sealed record JwtSettings(string Issuer, string Audience, string UserClaim);
