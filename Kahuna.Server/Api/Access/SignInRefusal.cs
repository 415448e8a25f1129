using Grpc.Core;

namespace Kahuna.Server.Api.Access;

/// <summary>Why a request is refused before it is looked at. Nothing was done. Immutable.</summary>
/// <param name="Code">UNAUTHENTICATED, PERMISSION_DENIED, RESOURCE_EXHAUSTED or UNAVAILABLE.</param>
/// <param name="Sentence">For the caller; never anything of what it showed but the user's name.</param>
internal sealed record SignInRefusal(StatusCode Code, string Sentence)
{
    /// <summary>When to try again; null: the same request will not do better.</summary>
    public TimeSpan? RetryAfter { get; init; }

    /// <summary>The name that the caller gave itself, for the audit log; empty: none.</summary>
    public string ClaimedName { get; init; } = "";

    /// <summary>The caller is nobody.</summary>
    public static SignInRefusal Unauthenticated(string sentence, string claimedName = "") =>
        new(StatusCode.Unauthenticated, sentence) { ClaimedName = claimedName };
}
