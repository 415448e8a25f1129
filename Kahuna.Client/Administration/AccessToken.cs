namespace Kahuna.Client.Administration;

/// <summary>A token of a user, without its secret, which the cluster does not keep. Immutable.</summary>
/// <param name="Id">Names it, in hexadecimal.</param>
/// <param name="User">Whose it is.</param>
/// <param name="CreatedAt">When it was made.</param>
/// <param name="ExpiresAt">From then on it is refused; null: never.</param>
/// <param name="Note">What it is for.</param>
public sealed record AccessToken(
    string Id, string User, DateTimeOffset CreatedAt, DateTimeOffset? ExpiresAt, string Note);

/// <summary>A token that was just made. Immutable. Its text shows no secret.</summary>
/// <param name="Token">What the cluster knows of it.</param>
/// <param name="Secret">What the caller sends (<see cref="KahunaCredentials.Token(string)"/>). Shown this once.</param>
public sealed record NewToken(AccessToken Token, string Secret)
{
    /// <summary>Describes the token, without its secret.</summary>
    public override string ToString() => $"{nameof(NewToken)} {{ {nameof(Token)} = {Token} }}";
}

/// <summary>How a token is made. Immutable.</summary>
public sealed record TokenOptions
{
    /// <summary>Its lifetime: 1 s to 10 years; null: it does not expire.</summary>
    public TimeSpan? Lifetime { get; init; }

    /// <summary>What it is for: at most 256 characters.</summary>
    public string Note { get; init; } = "";
}
