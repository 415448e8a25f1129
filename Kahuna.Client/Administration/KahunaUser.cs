namespace Kahuna.Client.Administration;

/// <summary>A user of the cluster. Immutable.</summary>
public sealed record KahunaUser
{
    /// <summary>1 to 128 characters, no control characters; unique. To sign in with a password it has no ':'.</summary>
    public required string Name { get; init; }

    /// <summary>
    /// Names of roles. The role <c>admin</c> always exists and has every permission on everything.
    /// </summary>
    public IReadOnlyList<string> Roles { get; init; } = [];

    /// <summary>Subjects or alternative names of the client certificates that are this user.</summary>
    public IReadOnlyList<string> CertificateNames { get; init; } = [];

    /// <summary>The user may not sign in, and has nothing open.</summary>
    public bool IsDisabled { get; init; }

    /// <summary>The user can sign in with a password. Told by the cluster; without effect in a call.</summary>
    public bool HasPassword { get; init; }
}

/// <summary>What of a user changes; what is null stays. Immutable. Its text shows no password.</summary>
public sealed record UserChange
{
    /// <summary>Another name; what the user has open stays open.</summary>
    public string? Name { get; init; }

    /// <summary>All roles from now on.</summary>
    public IReadOnlyList<string>? Roles { get; init; }

    /// <summary>All names of certificates from now on.</summary>
    public IReadOnlyList<string>? CertificateNames { get; init; }

    /// <summary>True ends what the user has open.</summary>
    public bool? IsDisabled { get; init; }

    /// <summary>
    /// Another password of 8 to 1,024 bytes, which ends what was opened with the one before; the empty one takes it
    /// away.
    /// </summary>
    public string? Password { get; init; }

    /// <summary>Names the user; without secrets.</summary>
    public override string ToString() => $"{nameof(UserChange)} {{ {nameof(Name)} = {Name} }}";
}
