namespace Kahuna.Client.Administration;

/// <summary>Who the client is to the cluster, and what it may do. Immutable.</summary>
/// <param name="User">The user's name; empty: the cluster runs without authentication.</param>
/// <param name="Method">
/// How it said so: <c>password</c>, <c>token</c>, <c>certificate</c>, <c>jwt</c> or <c>none</c>.
/// </param>
/// <param name="Roles">Its roles.</param>
/// <param name="Grants">What they allow together.</param>
public sealed record Identity(
    string User, string Method, IReadOnlyList<string> Roles, IReadOnlyList<RoleGrant> Grants)
{
    /// <summary>What the user may use up.</summary>
    public UserQuota Quota { get; init; } = UserQuota.None;

    /// <summary>What the user uses, as far as the node that answered has applied it.</summary>
    public UserUsage Usage { get; init; } = new(0, 0);
}
