using System.Collections.Concurrent;
using Kahuna.Server.State.Meta;

namespace Kahuna.Server.Access;

/// <summary>
/// All users, roles and tokens, decoded from the records of one version. Names compare by their characters. Immutable;
/// any thread.
/// </summary>
internal sealed class AccessBook
{
    private readonly Dictionary<string, UserRecord> _usersByName = new(StringComparer.Ordinal);
    private readonly Dictionary<uint, UserRecord> _usersById = [];
    private readonly Dictionary<string, UserRecord?> _usersByCertificate = new(StringComparer.Ordinal);
    private readonly Dictionary<string, RoleRecord> _roles = new(StringComparer.Ordinal);
    private readonly Dictionary<Guid, TokenRecord> _tokens = [];
    private readonly ConcurrentDictionary<uint, Rights> _rights = [];
    private readonly AccessRows _rows;

    private AccessBook(AccessRows rows)
    {
        _rows = rows;
        foreach (AccessRow row in rows.Rows)
        {
            Take(row);
        }

        _roles[RoleRecord.AdminName] = RoleRecord.Admin;
        Users = [.. _usersById.Values.OrderBy(static user => user.Name, StringComparer.Ordinal)
            .ThenBy(static user => user.Id)];
        Roles = [.. _roles.Values.OrderBy(static role => role.Name, StringComparer.Ordinal)];
        Tokens = [.. _tokens.Values.OrderBy(static token => TokenText.IdText(token.Id), StringComparer.Ordinal)];

        // Records never hold a name twice. If they did, the oldest user would have it, and a certificate with the
        // names of two users would be nobody's.
        foreach (UserRecord user in Users)
        {
            _usersByName.TryAdd(user.Name, user);
            foreach (string name in user.CertificateNames)
            {
                bool isTaken = _usersByCertificate.TryGetValue(name, out UserRecord? other) && other != user;
                _usersByCertificate[name] = isTaken ? null : user;
            }
        }
    }

    /// <summary>Nobody is known.</summary>
    public static AccessBook Empty { get; } = new(AccessRows.Empty);

    /// <summary>The version of the records.</summary>
    public ulong Version => _rows.Version;

    /// <summary>The users, in the order of their names.</summary>
    public IReadOnlyList<UserRecord> Users { get; }

    /// <summary>The roles, in the order of their names; <see cref="RoleRecord.Admin"/> is among them.</summary>
    public IReadOnlyList<RoleRecord> Roles { get; }

    /// <summary>The tokens, in the order of their ids' texts.</summary>
    public IReadOnlyList<TokenRecord> Tokens { get; }

    /// <summary>The highest number that a user ever had; 0 for none.</summary>
    public uint LastUserId { get; private set; }

    /// <summary>The records of a kind, as they are.</summary>
    public IEnumerable<AccessRow> RowsOf(AccessRowKind kind) => _rows.Rows.Where(row => row.Kind == (byte)kind);

    /// <summary>Decodes the records. A row that this version does not know is left out.</summary>
    public static AccessBook Read(AccessRows rows) => new(rows);

    /// <summary>A user by name; null for nobody.</summary>
    public UserRecord? FindUser(string name) => _usersByName.GetValueOrDefault(name);

    /// <summary>A user by number; null for nobody.</summary>
    public UserRecord? FindUser(uint id) => _usersById.GetValueOrDefault(id);

    /// <summary>
    /// The user whose certificates have one of the names; null for nobody, and when they are names of several users.
    /// </summary>
    public UserRecord? FindUserOfCertificate(IReadOnlyList<string> names)
    {
        UserRecord? found = null;
        foreach (string name in names)
        {
            if (!_usersByCertificate.TryGetValue(name, out UserRecord? user))
            {
                continue;
            }

            if (user is null || (found is not null && found != user))
            {
                return null;
            }

            found = user;
        }

        return found;
    }

    /// <summary>A role by name; null for none.</summary>
    public RoleRecord? FindRole(string name) => _roles.GetValueOrDefault(name);

    /// <summary>A token; null for none.</summary>
    public TokenRecord? FindToken(Guid id) => _tokens.GetValueOrDefault(id);

    /// <summary>
    /// What a user of this book may do: the union of its roles; nothing if it is disabled. Roles that do not exist
    /// allow nothing. The same object each time.
    /// </summary>
    public Rights RightsOf(UserRecord user) =>
        _rights.TryGetValue(user.Id, out Rights? known) ? known : _rights.GetOrAdd(user.Id, RightsOf(user.Id));

    /// <summary>
    /// Some user may administer: it is not disabled, has a password, the name of a certificate or a token that has not
    /// expired, and a role that allows it.
    /// </summary>
    /// <param name="now">The time by which tokens expire.</param>
    public bool HasAdministrator(DateTimeOffset now) =>
        Users.Any(user => RightsOf(user).IsAdmin && (
            user.Password is not null
            || user.CertificateNames.Count > 0
            || Tokens.Any(token => token.UserId == user.Id && !token.IsExpired(now))));

    /// <summary>The book as it is once the rows are recorded.</summary>
    public AccessBook With(IReadOnlyList<AccessRow> changes)
    {
        Dictionary<string, AccessRow> rows = new(StringComparer.Ordinal);
        foreach (AccessRow row in _rows.Rows.Concat(changes))
        {
            rows[$"{(char)row.Kind}{Convert.ToHexString(row.Name)}"] = row;
        }

        return new AccessBook(_rows with
        {
            Version = _rows.Version + 1,
            Rows = [.. rows.Values.Where(static row => row.Value is not null)],
        });
    }

    private Rights RightsOf(uint id) =>
        FindUser(id) is { IsDisabled: false } user
            ? Rights.Of(user.Roles.Select(FindRole).OfType<RoleRecord>().SelectMany(static role => role.Grants))
            : Rights.None;

    private void Take(AccessRow row)
    {
        switch ((AccessRowKind)row.Kind)
        {
            case AccessRowKind.User when AccessRowFormat.ReadUser(row) is { } user:
                _usersById[user.Id] = user;
                LastUserId = Math.Max(LastUserId, user.Id);
                break;
            case AccessRowKind.Role when AccessRowFormat.ReadRole(row) is { } role:
                _roles[role.Name] = role;
                break;
            case AccessRowKind.Token when AccessRowFormat.ReadToken(row) is { } token:
                _tokens[token.Id] = token;
                break;
            case AccessRowKind.LastUserId when AccessRowFormat.ReadLastUserId(row) is { } id:
                LastUserId = Math.Max(LastUserId, id);
                break;
            default:
                break;
        }
    }
}
