using System.Globalization;
using System.Text;
using Kahuna.Wire;

namespace Kahuna.Server.Access;

/// <summary>
/// What the records may hold: limits, names, grants, passwords. An answer of null: it may. Stateless, any thread.
/// </summary>
internal static class AccessRules
{
    /// <summary>The most users.</summary>
    public const int UsersMax = 4_096;

    /// <summary>The most roles, besides the one that is built in.</summary>
    public const int RolesMax = 1_024;

    /// <summary>The most tokens of all users together.</summary>
    public const int TokensMax = 16_384;

    /// <summary>The most grants of a role.</summary>
    public const int GrantsMax = 256;

    /// <summary>The most roles of a user.</summary>
    public const int RolesOfUserMax = 64;

    /// <summary>The most names of certificates of a user.</summary>
    public const int CertificateNamesMax = 16;

    /// <summary>Longest name of a user or a role, in characters.</summary>
    public const int NameCharactersMax = 128;

    /// <summary>Longest name of a role in bytes of UTF-8: that of a row.</summary>
    public const int RoleNameBytesMax = State.Meta.AccessRow.NameBytesMax;

    /// <summary>Longest name of a certificate, and longest note, in characters.</summary>
    public const int TextCharactersMax = 256;

    /// <summary>The highest limits of keys and of bytes that a quota sets.</summary>
    public const long QuotaMax = 1L << 60;

    /// <summary>The highest limit of operations per second that a quota sets.</summary>
    public const int OperationsPerSecondMax = 10_000_000;

    /// <summary>Shortest life of a token, in ms.</summary>
    public const long TokenMsMin = 1_000;

    /// <summary>Longest life of a token that ends at all, in ms: 10 years.</summary>
    public const long TokenMsMax = 10L * 365 * 24 * 3600 * 1000;

    /// <summary>Why a user cannot have the name.</summary>
    public static AccessProblem? OfUserName(string name) => OfName("the name of a user", name, NameCharactersMax);

    /// <summary>Why a role cannot have the name.</summary>
    public static AccessProblem? OfRoleName(string name) =>
        OfName("the name of a role", name, NameCharactersMax)
            ?? (Encoding.UTF8.GetByteCount(name) > RoleNameBytesMax
                ? Invalid($"The name of a role has more than {RoleNameBytesMax} bytes of UTF-8.")
                : null);

    /// <summary>Why a user cannot have the password.</summary>
    public static AccessProblem? OfPassword(string password)
    {
        int bytes = Encoding.UTF8.GetByteCount(password);
        return bytes is < Passwords.BytesMin or > Passwords.BytesMax
            ? Invalid(
                $"The password has {bytes:N0} bytes; it must have {Passwords.BytesMin} to {Passwords.BytesMax:N0}.")
            : null;
    }

    /// <summary>
    /// Why the user cannot be as it is: its roles do not exist, or a name is not valid or taken. The book may hold an
    /// earlier version of it.
    /// </summary>
    public static AccessProblem? OfUser(AccessBook book, UserRecord user)
    {
        if (OfUserName(user.Name) is { } wrong)
        {
            return wrong;
        }

        if (book.FindUser(user.Name) is { } other && other.Id != user.Id)
        {
            return new AccessProblem(
                AccessRefusal.AlreadyExists, $"There is a user {QuotedName.Of(user.Name)} already.");
        }

        if (user.Password is not null && user.Name.Contains(':', StringComparison.Ordinal))
        {
            return Invalid("A user with a password cannot have a ':' in its name: signing in by password ends the "
                + "name there.");
        }

        return OfRoles(book, user.Roles) ?? OfCertificateNames(book, user) ?? OfQuota(user);
    }

    /// <summary>Why the role cannot be as it is.</summary>
    public static AccessProblem? OfRole(RoleRecord role)
    {
        if (OfRoleName(role.Name) is { } wrong)
        {
            return wrong;
        }

        if (role.Grants.Count > GrantsMax)
        {
            return Invalid($"The role has {role.Grants.Count:N0} grants; the limit is {GrantsMax}.");
        }

        for (int i = 0; i < role.Grants.Count; i++)
        {
            if (GrantRefusal(role.Grants[i]) is { } refusal)
            {
                return Invalid($"Grant {i + 1:N0}: {refusal}.");
            }
        }

        int bytes = AccessRowFormat.Of(role).Value!.Length;
        return bytes > State.Meta.AccessRow.ValueBytesMax
            ? Invalid($"The grants of the role take {bytes:N0} bytes; the limit is "
                + $"{State.Meta.AccessRow.ValueBytesMax:N0}.")
            : null;
    }

    /// <summary>Why a token cannot have this life or this note.</summary>
    /// <param name="expiresInMs">Milliseconds that it is to live; 0: for ever.</param>
    /// <param name="note">What it is for.</param>
    public static AccessProblem? OfToken(long expiresInMs, string note) =>
        expiresInMs != 0 && expiresInMs is < TokenMsMin or > TokenMsMax
            ? Invalid($"expires_in_ms is {expiresInMs:N0}; it must be 0 or {TokenMsMin:N0} to {TokenMsMax:N0}.")
            : note.Length == 0 ? null : OfName("the note", note, TextCharactersMax);

    private static AccessProblem? OfRoles(AccessBook book, IReadOnlyList<string> roles)
    {
        if (roles.Count > RolesOfUserMax)
        {
            return Invalid($"The user has {roles.Count:N0} roles; the limit is {RolesOfUserMax}.");
        }

        foreach (string role in roles)
        {
            if (book.FindRole(role) is null)
            {
                return new AccessProblem(AccessRefusal.NotFound, $"There is no role {QuotedName.Of(role)}.");
            }
        }

        return null;
    }

    private static AccessProblem? OfCertificateNames(AccessBook book, UserRecord user)
    {
        if (user.CertificateNames.Count > CertificateNamesMax)
        {
            return Invalid(
                $"The user has {user.CertificateNames.Count:N0} names of certificates; the limit is "
                    + $"{CertificateNamesMax}.");
        }

        foreach (string name in user.CertificateNames)
        {
            if (OfName("the name of a certificate", name, TextCharactersMax) is { } wrong)
            {
                return wrong;
            }

            if (book.Users.Any(other => other.Id != user.Id && other.CertificateNames.Contains(name)))
            {
                return new AccessProblem(
                    AccessRefusal.AlreadyExists,
                    $"Another user has the certificates of {QuotedName.Of(name)} already.");
            }
        }

        return null;
    }

    private static AccessProblem? OfQuota(UserRecord user)
    {
        UserQuota quota = user.Quota;
        if (quota.Keys is < 0 or > QuotaMax || quota.Bytes is < 0 or > QuotaMax)
        {
            return Invalid($"The quota of keys or bytes must be 0, for no limit, to {QuotaMax:N0}.");
        }

        if (quota.OperationsPerSecond is < 0 or > OperationsPerSecondMax)
        {
            return Invalid(
                $"The quota of operations per second must be 0, for no limit, to {OperationsPerSecondMax:N0}.");
        }

        return quota.BoundsStorage && UserQuotas.AccountOf(user) == 0
            ? new AccessProblem(
                AccessRefusal.FailedPrecondition,
                "The user cannot have a quota of keys or bytes: what it stores is not counted, because "
                    + $"{ushort.MaxValue:N0} users were created before it.")
            : null;
    }

    private static string? GrantRefusal(Grant grant)
    {
        if (grant.Permissions == Permissions.None || (grant.Permissions & ~(Permissions.Data | Permissions.Admin)) != 0)
        {
            return "it names no permission, or one that this version does not know";
        }

        if ((grant.Permissions & Permissions.Admin) != 0 && !grant.CoversAll)
        {
            return "the permission admin covers all names; give it with an empty prefix and without a level";
        }

        if (grant.Name.Length > Limits.KeyBytesMax)
        {
            return string.Create(
                CultureInfo.InvariantCulture,
                $"its name has {grant.Name.Length:N0} bytes; the limit is {Limits.KeyBytesMax:N0}");
        }

        return grant.Name.Length == 0 && grant.Scope != GrantScope.Prefix
            ? "its name is empty; only a prefix may be"
            : null;
    }

    private static AccessProblem? OfName(string what, string name, int charactersMax)
    {
        if (name.Length is 0 || name.Length > charactersMax)
        {
            return Invalid(
                $"{Capital(what)} has {name.Length:N0} characters; it must have 1 to {charactersMax}.");
        }

        foreach (Rune rune in name.EnumerateRunes())
        {
            if (rune == Rune.ReplacementChar
                || Rune.GetUnicodeCategory(rune)
                    is UnicodeCategory.Control
                    or UnicodeCategory.Format
                    or UnicodeCategory.LineSeparator
                    or UnicodeCategory.ParagraphSeparator)
            {
                return Invalid($"{Capital(what)} has a control character, or one that is not shown.");
            }
        }

        return char.IsWhiteSpace(name[0]) || char.IsWhiteSpace(name[^1])
            ? Invalid($"{Capital(what)} begins or ends with a space.")
            : null;
    }

    private static string Capital(string what) => string.Concat(char.ToUpperInvariant(what[0]).ToString(), what[1..]);

    private static AccessProblem Invalid(FormattableString sentence) =>
        new(AccessRefusal.InvalidArgument, FormattableString.Invariant(sentence));

    private static AccessProblem Invalid(string sentence) => new(AccessRefusal.InvalidArgument, sentence);
}
