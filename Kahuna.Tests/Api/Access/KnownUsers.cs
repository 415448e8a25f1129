using Kahuna.Server.Access;
using Kahuna.Server.State.Meta;

namespace Kahuna.Tests.Api.Access;

/// <summary>
/// The records of users of one test, in memory, with a node's copy of them. Each change is obeyed at once. Owned by the
/// test; any thread.
/// </summary>
internal sealed class KnownUsers : IAccessLedger
{
    public const string Password = "correct horse";

    /// <summary>Few rounds: what is tested is not the hash.</summary>
    private const int Rounds = 10;

    private readonly Lock _lock = new();
    private readonly Dictionary<string, AccessRow> _rows = [];
    private ulong _version;

    public KnownUsers(TimeProvider? time = null, bool isRequired = true) =>
        State = new AccessState(isRequired, time ?? TimeProvider.System);

    public AccessState State { get; }

    public AccessBook Book => State.Book;

    /// <summary>The next change meets others that came first.</summary>
    public bool Conflicts { get; set; }

    public static PasswordHash HashOf(string password)
    {
        PasswordHash made = Passwords.Hash(password);
        byte[] hash = System.Security.Cryptography.Rfc2898DeriveBytes.Pbkdf2(
            password, made.Salt, Rounds, System.Security.Cryptography.HashAlgorithmName.SHA256, made.Hash.Length);
        return new PasswordHash(Rounds, made.Salt, hash);
    }

    /// <summary>A user with <see cref="Password"/>.</summary>
    public UserRecord Add(uint id, string name, params string[] roles) => Put(new UserRecord(id, name)
    {
        Password = HashOf(Password),
        PasswordVersion = 1,
        Roles = roles,
    });

    public UserRecord Put(UserRecord user)
    {
        Change([AccessRowFormat.Of(user)]);
        return user;
    }

    /// <summary>A token of a user; its text.</summary>
    public (TokenRecord Token, string Text) AddToken(uint user, long expiresMs = 0)
    {
        byte[] secret = TokenText.NewSecret();
        TokenRecord token = new(TokenText.NewId(), user, TokenText.Hash(secret), 0, expiresMs, "");
        Change([AccessRowFormat.Of(token)]);
        return (token, TokenText.Of(token.Id, secret));
    }

    public void Remove(AccessRow row) => Change([AccessRowFormat.Deleted(row)]);

    public Task<AccessCommit> ChangeAsync(ulong version, IReadOnlyList<AccessRow> rows, CancellationToken ct)
    {
        lock (_lock)
        {
            if (Conflicts || version != _version)
            {
                Conflicts = false;
                return Task.FromResult(AccessCommit.Conflict);
            }
        }

        Change(rows);
        return Task.FromResult(AccessCommit.Applied);
    }

    private void Change(IReadOnlyList<AccessRow> rows)
    {
        lock (_lock)
        {
            foreach (AccessRow row in rows)
            {
                string name = $"{row.Kind} {Convert.ToHexString(row.Name)}";
                if (row.Value is null)
                {
                    _rows.Remove(name);
                }
                else
                {
                    _rows[name] = row;
                }
            }

            State.Publish(new AccessRows(++_version, [], [.. _rows.Values]));
        }
    }
}
