using Kahuna.Server.Access;
using Kahuna.Server.State.Meta;

namespace Kahuna.Tests.Access;

/// <summary>Records in memory, obeyed at once. Any thread.</summary>
internal sealed class MemoryLedger : IAccessLedger
{
    private readonly Lock _lock = new();
    private readonly Dictionary<string, AccessRow> _byKey = new(StringComparer.Ordinal);
    private AccessRows _rows = AccessRows.Empty;

    /// <summary>What a node knows of the records.</summary>
    public AccessState State { get; } = new(isRequired: true, TimeProvider.System);

    /// <inheritdoc/>
    public AccessBook Book => State.Book;

    /// <summary>Called before each change, outside of the lock, with the number of changes asked for so far.</summary>
    public Action<int> Before { get; set; } = static _ => { };

    /// <summary>How every change ends from now on, without being made; null: as it does.</summary>
    public AccessCommit? End { get; set; }

    /// <summary>Changes asked for.</summary>
    public int Asked { get; private set; }

    /// <summary>The most rows of one change.</summary>
    public int RowsMost { get; private set; }

    /// <inheritdoc/>
    public Task<AccessCommit> ChangeAsync(ulong version, IReadOnlyList<AccessRow> rows, CancellationToken ct)
    {
        Before(++Asked);
        Assert.InRange(rows.Count, 1, AccessRow.RowsMax);
        Assert.All(rows, static row =>
        {
            Assert.InRange(row.Name.Length, 1, AccessRow.NameBytesMax);
            Assert.InRange(row.Value?.Length ?? 0, 0, AccessRow.ValueBytesMax);
        });
        if (End is { } end)
        {
            return Task.FromResult(end);
        }

        lock (_lock)
        {
            if (version != _rows.Version)
            {
                return Task.FromResult(AccessCommit.Conflict);
            }

            RowsMost = Math.Max(RowsMost, rows.Count);
            Put(rows);
        }

        return Task.FromResult(AccessCommit.Applied);
    }

    /// <summary>Records rows as another node might.</summary>
    public void Put(params IReadOnlyList<AccessRow> rows)
    {
        lock (_lock)
        {
            foreach (AccessRow row in rows)
            {
                string key = $"{row.Kind}-{Convert.ToHexString(row.Name)}";
                if (row.Value is null)
                {
                    _byKey.Remove(key);
                }
                else
                {
                    _byKey[key] = row;
                }
            }

            _rows = new AccessRows(_rows.Version + 1, [], [.. _byKey.Values]);
            State.Publish(_rows);
        }
    }

    /// <summary>Puts a user who may administer, and has the name of a certificate to sign in with.</summary>
    public UserRecord PutAdministrator(uint id, string name)
    {
        UserRecord user = new(id, name) { Roles = [RoleRecord.AdminName], CertificateNames = [$"CN={name}"] };
        Put(AccessRowFormat.Of(user));
        return user;
    }

    /// <summary>A caller who is this user.</summary>
    public Caller CallerOf(UserRecord user) => new(State, user, CallerMethod.Certificate);
}
