namespace Kahuna.Server.Access;

/// <summary>A new user, or what changes of one. Immutable.</summary>
internal sealed record UserChange
{
    /// <summary>The name; null: it stays.</summary>
    public string? Name { get; init; }

    /// <summary>Names of roles; null: they stay.</summary>
    public IReadOnlyList<string>? Roles { get; init; }

    /// <summary>Names of certificates; null: they stay.</summary>
    public IReadOnlyList<string>? CertificateNames { get; init; }

    /// <summary>The user may not sign in; null: it stays as it is.</summary>
    public bool? IsDisabled { get; init; }

    /// <summary>The password; empty: it has none; null: it stays.</summary>
    public string? Password { get; init; }

    /// <summary>What the user may use up; null: it stays.</summary>
    public UserQuota? Quota { get; init; }

    /// <summary>Nothing changes.</summary>
    public bool IsNothing => this == new UserChange();

    /// <summary>The user after the change.</summary>
    /// <param name="user">The user before it.</param>
    /// <param name="hash">The hash of the new password; null for none.</param>
    public UserRecord ApplyTo(UserRecord user, PasswordHash? hash)
    {
        // Who signed in with the earlier password, or before the user was disabled, has to do so again.
        bool isEnd = Password is not null || (IsDisabled == true && !user.IsDisabled);
        return user with
        {
            Name = Name ?? user.Name,
            Roles = Roles is null ? user.Roles : [.. Roles.Distinct(StringComparer.Ordinal)],
            CertificateNames = CertificateNames is null
                ? user.CertificateNames
                : [.. CertificateNames.Distinct(StringComparer.Ordinal)],
            IsDisabled = IsDisabled ?? user.IsDisabled,
            Password = Password is null ? user.Password : hash,
            Quota = Quota ?? user.Quota,
            PasswordVersion = isEnd ? user.PasswordVersion + 1 : user.PasswordVersion,
        };
    }
}
