using Microsoft.IdentityModel.Tokens;

namespace Kahuna.Server.Api.Access;

/// <summary>The keys with which the issuer of JSON Web Tokens signs. Any thread.</summary>
internal interface IJwtKeys
{
    /// <summary>The public keys as they are known; none before they were read.</summary>
    IReadOnlyList<SecurityKey> Current { get; }

    /// <summary>
    /// Looks for keys that are new, because a token names one that is not known; at most now and then, and never
    /// longer than the token waits. True if there are others now.
    /// </summary>
    ValueTask<bool> RefreshAsync(CancellationToken ct);
}
