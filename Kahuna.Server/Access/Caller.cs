namespace Kahuna.Server.Access;

/// <summary>
/// Somebody who makes requests, and what it may do now. It follows the records: after each change it may do more or
/// less, or nothing at all. Any thread.
/// </summary>
internal sealed class Caller
{
    private readonly AccessState? _access;
    private Standing _standing;

    /// <param name="access">The records.</param>
    /// <param name="user">Who it is, as of the records' present version.</param>
    /// <param name="method">How it said so.</param>
    public Caller(AccessState access, UserRecord user, CallerMethod method)
    {
        (_access, UserId, Name, Method) = (access, user.Id, user.Name, method);
        PasswordVersion = user.PasswordVersion;
        Sessions = new UserSessions(user.Id);
        _standing = new Standing(AccessBook.Empty, Rights.None, null);
    }

    private Caller(string name, CallerMethod method)
    {
        (Name, Method) = (name, method);
        Sessions = new UserSessions(0);
        _standing = new Standing(AccessBook.Empty, Rights.None, null);
    }

    /// <summary>The node itself, or another one, for callers whose requests were checked where they came in.</summary>
    public static Caller Node { get; } = new("a node", CallerMethod.Node);

    /// <summary>Everybody, where authentication is off: nothing is checked.</summary>
    public static Caller Anybody { get; } = new("", CallerMethod.None);

    /// <summary>The user's number; 0 for none.</summary>
    public uint UserId { get; }

    /// <summary>The user's name when it signed in.</summary>
    public string Name { get; }

    /// <summary>How it said who it is.</summary>
    public CallerMethod Method { get; }

    /// <summary>The token that it showed.</summary>
    public Guid? Token { get; init; }

    /// <summary>The names of the certificate that it showed.</summary>
    public IReadOnlyList<string>? CertificateNames { get; init; }

    /// <summary>From then on nothing is allowed: milliseconds since 1970, UTC; 0: no such time.</summary>
    public long ExpiresMs { get; init; }

    /// <summary>Where from, for the audit log.</summary>
    public string Address { get; init; } = "";

    /// <summary>Its own sessions and idempotency keys.</summary>
    public UserSessions Sessions { get; }

    /// <summary>Nothing that it does is checked.</summary>
    public bool IsTrusted => _access is null;

    /// <summary>What it may do now; nothing when <see cref="End"/> says why.</summary>
    public Rights Rights => Now().Rights;

    /// <summary>What it may use up now; null: it is no user.</summary>
    public UserAllowance? Allowance => Now().Allowance;

    /// <summary>Why its identity no longer holds, as a sentence; null: it holds.</summary>
    public string? End => Now().End;

    private uint PasswordVersion { get; }

    private Standing Now()
    {
        Standing standing = Volatile.Read(ref _standing);
        if (_access is null)
        {
            return standing;
        }

        if (!ReferenceEquals(standing.Book, _access.Book))
        {
            standing = Look(_access.Book);
            Volatile.Write(ref _standing, standing);
        }

        return standing.End is null && ExpiresMs != 0 && _access.Now.ToUnixTimeMilliseconds() >= ExpiresMs
            ? Leave(standing, "What the caller showed to say who it is has expired; sign in again.")
            : standing;
    }

    private Standing Look(AccessBook book)
    {
        UserRecord? user = book.FindUser(UserId);
        string? end = user is null ? "The user was deleted."
            : user.IsDisabled ? "The user is disabled."
            : Method == CallerMethod.Password && user.PasswordVersion != PasswordVersion
                ? "The user has another password now; sign in again."
            : Token is { } token && book.FindToken(token) is null ? "The token was revoked."
            : CertificateNames is { } names && book.FindUserOfCertificate(names) != user
                ? "The certificate is no longer this user's."
            : null;
        return end is null
            ? new Standing(book, book.RightsOf(user!), null) { Allowance = _access!.Quotas.AllowanceOf(user!) }
            : new Standing(book, Rights.None, end);
    }

    private Standing Leave(Standing standing, string end)
    {
        Standing left = new(standing.Book, Rights.None, end);
        Volatile.Write(ref _standing, left);
        return left;
    }

    /// <summary>What follows from one version of the records.</summary>
    private sealed record Standing(AccessBook Book, Rights Rights, string? End)
    {
        public UserAllowance? Allowance { get; init; }
    }
}

/// <summary>How a caller said who it is.</summary>
internal enum CallerMethod
{
    /// <summary>It did not, and need not.</summary>
    None,

    /// <summary>A node of the cluster.</summary>
    Node,

    /// <summary>User and password.</summary>
    Password,

    /// <summary>A token of the cluster.</summary>
    Token,

    /// <summary>A client certificate.</summary>
    Certificate,

    /// <summary>A JSON Web Token of an issuer that the node trusts.</summary>
    Jwt,
}
