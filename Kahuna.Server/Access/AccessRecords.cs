namespace Kahuna.Server.Access;

/// <summary>What a row of the records is about. Values are stored.</summary>
internal enum AccessRowKind : byte
{
    /// <summary>A user: the name is <see cref="UserRecord.Id"/>, 4 bytes, little-endian.</summary>
    User = (byte)'u',

    /// <summary>A role: the name is its name.</summary>
    Role = (byte)'r',

    /// <summary>A token: the name is <see cref="TokenRecord.Id"/>, 16 bytes.</summary>
    Token = (byte)'t',

    /// <summary>The highest number that a user ever had: name <c>i</c>, value 4 bytes.</summary>
    LastUserId = (byte)'i',

    /// <summary>A vote to recover an administrator, or the end of it (ADR 47). Users and roles do not depend on
    /// it.</summary>
    RecoveryVote = (byte)'v',
}

/// <summary>A user. Immutable.</summary>
/// <param name="Id">A number that no other user ever has; it stays when the user is renamed.</param>
/// <param name="Name">1 to 128 characters, no control characters; unique.</param>
internal sealed record UserRecord(uint Id, string Name)
{
    /// <summary>What a password is checked against (<see cref="PasswordHash"/>); null: no password.</summary>
    public PasswordHash? Password { get; init; }

    /// <summary>Names of roles.</summary>
    public IReadOnlyList<string> Roles { get; init; } = [];

    /// <summary>Subjects or alternative names of client certificates that are this user.</summary>
    public IReadOnlyList<string> CertificateNames { get; init; } = [];

    /// <summary>The user may not sign in, and what it had open ends.</summary>
    public bool IsDisabled { get; init; }

    /// <summary>
    /// Grows with each change of the password, and when the user is disabled: who signed in before has to do so again.
    /// </summary>
    public uint PasswordVersion { get; init; }

    /// <summary>What the user may use up.</summary>
    public UserQuota Quota { get; init; }
}

/// <summary>What a user may use up; 0: without a limit. A value.</summary>
/// <param name="Keys">Keys that it wrote last, over all partitions and both levels of durability.</param>
/// <param name="Bytes">Bytes of the names and the present values of these keys.</param>
/// <param name="OperationsPerSecond">Operations that one node carries out for it in a second.</param>
internal readonly record struct UserQuota(long Keys, long Bytes, int OperationsPerSecond)
{
    /// <summary>It bounds keys or bytes.</summary>
    public bool BoundsStorage => Keys != 0 || Bytes != 0;
}

/// <summary>What a user uses, as far as a node has applied it. A value.</summary>
/// <param name="Keys">As <see cref="UserQuota.Keys"/>.</param>
/// <param name="Bytes">As <see cref="UserQuota.Bytes"/>.</param>
internal readonly record struct UserUsage(long Keys, long Bytes);

/// <summary>A password's salted hash: PBKDF2 with HMAC-SHA-256. Immutable.</summary>
/// <param name="Iterations">Rounds.</param>
/// <param name="Salt">16 random bytes.</param>
/// <param name="Hash">32 bytes.</param>
internal sealed record PasswordHash(int Iterations, byte[] Salt, byte[] Hash);

/// <summary>A role: what its users may do. Immutable.</summary>
/// <param name="Name">1 to 128 characters, no control characters; unique.</param>
/// <param name="Grants">What it allows; nothing else is allowed.</param>
internal sealed record RoleRecord(string Name, IReadOnlyList<Grant> Grants)
{
    /// <summary>The name of <see cref="Admin"/>; no other role may have it.</summary>
    public const string AdminName = "admin";

    /// <summary>The role that always exists, is not stored, and allows everything.</summary>
    public static RoleRecord Admin { get; } = new(AdminName, [Grant.Everything]);
}

/// <summary>A token of a user. Immutable.</summary>
/// <param name="Id">16 random bytes, part of the token's text.</param>
/// <param name="UserId">Whose.</param>
/// <param name="SecretHash">SHA-256 of the secret part.</param>
/// <param name="CreatedMs">Milliseconds since 1970, UTC.</param>
/// <param name="ExpiresMs">From then on it is refused; milliseconds since 1970, UTC; 0: never.</param>
/// <param name="Note">What it is for.</param>
internal sealed record TokenRecord(
    Guid Id, uint UserId, byte[] SecretHash, long CreatedMs, long ExpiresMs, string Note)
{
    /// <summary>It is refused at this time.</summary>
    public bool IsExpired(DateTimeOffset now) => ExpiresMs != 0 && now.ToUnixTimeMilliseconds() >= ExpiresMs;
}
