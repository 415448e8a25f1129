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

    /// <summary>What the user may use up; no limits by default.</summary>
    public UserQuota Quota { get; init; } = UserQuota.None;

    /// <summary>
    /// What the user uses, as far as the node that answered has applied it. Told by the cluster; without effect in a
    /// call.
    /// </summary>
    public UserUsage Usage { get; init; } = new(0, 0);
}

/// <summary>What a user may use up. Immutable.</summary>
public sealed record UserQuota
{
    /// <summary>No limits.</summary>
    public static UserQuota None { get; } = new();

    /// <summary>
    /// Keys that the user wrote last, over all partitions and both levels of durability; 0: without a limit. When they
    /// are reached, writes that may add keys fail with <see cref="KahunaErrorCode.QuotaExceeded"/>.
    /// </summary>
    public long Keys { get; init; }

    /// <summary>
    /// Bytes of the names and present values of these keys; 0: without a limit. When they are reached, writes that may
    /// add bytes fail with <see cref="KahunaErrorCode.QuotaExceeded"/>.
    /// </summary>
    public long Bytes { get; init; }

    /// <summary>
    /// Operations that each node carries out for the user in a second, 10,000,000 at most; 0: without a limit. The
    /// client retries what is above, until its request timeout.
    /// </summary>
    public int OperationsPerSecond { get; init; }
}

/// <summary>What a user uses. Immutable.</summary>
/// <param name="Keys">Keys that the user wrote last, over all partitions and both levels of durability.</param>
/// <param name="Bytes">Bytes of the names and present values of these keys.</param>
public sealed record UserUsage(long Keys, long Bytes);

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

    /// <summary>All limits from now on; <see cref="UserQuota.None"/> takes them away.</summary>
    public UserQuota? Quota { get; init; }

    /// <summary>Names the user; without secrets.</summary>
    public override string ToString() => $"{nameof(UserChange)} {{ {nameof(Name)} = {Name} }}";
}
