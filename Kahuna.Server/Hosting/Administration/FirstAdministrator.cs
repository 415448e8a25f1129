using System.Text;
using Kahuna.Server.Access;
using Kahuna.Server.State.Meta;

namespace Kahuna.Server.Hosting.Administration;

/// <summary>
/// Makes the first user of a cluster, with the role <c>admin</c>, if there is none yet. A change counts only against
/// the version of the records on which it was based, so of several nodes and callers one makes it. Any thread.
/// </summary>
/// <param name="ledger">The records.</param>
/// <param name="audit">Gets what was done.</param>
internal sealed class FirstAdministrator(IAccessLedger ledger, IAuditLog audit)
{
    private const string Action = "init-admin";

    /// <summary>How making it ended.</summary>
    internal enum Result
    {
        /// <summary>It is made.</summary>
        Made,

        /// <summary>There are users; nothing was changed.</summary>
        HasUsers,

        /// <summary>Other changes came first; nothing was changed.</summary>
        Conflict,

        /// <summary>No answer; it may have been made.</summary>
        Unknown,
    }

    /// <summary>What is wrong with a name or a password, as a sentence; null: nothing.</summary>
    public static string? Objection(string user, string password)
    {
        int bytes = Encoding.UTF8.GetByteCount(password);
        return ObjectionToName(user)
            ?? (bytes is < Passwords.BytesMin or > Passwords.BytesMax || password.Any(char.IsControl)
                ? $"The password must have {Passwords.BytesMin} to {Passwords.BytesMax} bytes, without control "
                    + $"characters."
                : null);
    }

    /// <summary>What is wrong with a name, as a sentence; null: nothing.</summary>
    public static string? ObjectionToName(string user) =>
        user.Length is 0 or > AccessRules.NameCharactersMax || user.Any(char.IsControl) || user.Contains(':')
            ? $"The user's name must have 1 to {AccessRules.NameCharactersMax} characters, without ':' and control "
                + $"characters."
            : null;

    /// <summary>Makes the user, if there is none.</summary>
    /// <param name="by">Who asks for it.</param>
    /// <param name="user">The name, to which there is no <see cref="Objection"/>.</param>
    /// <param name="password">The password, likewise.</param>
    /// <param name="ct">Ends the wait; it may still be made.</param>
    public async Task<Result> MakeAsync(Caller by, string user, string password, CancellationToken ct)
    {
        AccessBook book = ledger.Book;
        if (book.Users.Count > 0)
        {
            audit.Write(by, Action, user, AuditResults.Refused("there are users"));
            return Result.HasUsers;
        }

        uint id = book.LastUserId + 1;
        UserRecord record = new(id, user)
        {
            Password = Passwords.Hash(password),
            PasswordVersion = 1,
            Roles = [RoleRecord.AdminName],
        };
        AccessRow[] rows = [AccessRowFormat.Of(record), AccessRowFormat.OfLastUserId(id)];
        AccessCommit commit = await ledger.ChangeAsync(book.Version, rows, ct).ConfigureAwait(false);
        Result result = commit switch
        {
            AccessCommit.Applied => Result.Made,
            AccessCommit.Conflict => Result.Conflict,
            _ => Result.Unknown,
        };
        audit.Write(by, Action, user, result switch
        {
            Result.Made => AuditResults.Done,
            Result.Conflict => AuditResults.Refused("other changes came first"),
            _ => AuditResults.Unknown,
        });
        return result;
    }
}
