using System.Globalization;
using Kahuna.Server.State.Meta;

namespace Kahuna.Server.Access;

/// <summary>
/// Changes users, roles and tokens, and keeps the rules about them. A change is planned by the newest records that this
/// node knows and made only if no other came first; otherwise it is planned anew. Any thread.
/// </summary>
/// <param name="ledger">The replicated records.</param>
/// <param name="time">The clock by which tokens expire.</param>
/// <param name="caller">Who asks for the changes, and must be an administrator; null: this node itself.</param>
internal sealed class AccessChanges(IAccessLedger ledger, TimeProvider time, Caller? caller = null)
{
    /// <summary>How often a change is planned before it gives up.</summary>
    public const int TriesMax = 5;

    /// <summary>The pause before a change is planned anew, in ms, times the attempts so far.</summary>
    private const int PauseMs = 10;

    private const string IsBuiltIn = "The role admin is built in; it cannot be changed or deleted.";

    /// <summary>Tokens that expired longer ago than this make room for new ones.</summary>
    private static readonly TimeSpan s_forgotten = TimeSpan.FromDays(1);

    /// <summary>
    /// The changes that a caller asks for. It must be an administrator by the very records on which a change is based:
    /// it may have been one when it asked, and be none when its change is planned anew.
    /// </summary>
    public AccessChanges By(Caller asking) => new(ledger, time, asking);

    /// <summary>Creates a user.</summary>
    public Task<AccessAnswer<UserRecord>> CreateUserAsync(UserChange wanted, CancellationToken ct)
    {
        if (Hash(wanted, out PasswordHash? hash) is { } wrong)
        {
            return Task.FromResult(new AccessAnswer<UserRecord>(null, wrong));
        }

        return RunAsync(
            book =>
            {
                UserRecord user = wanted.ApplyTo(new UserRecord(book.LastUserId + 1, ""), hash);
                AccessProblem? problem = AccessRules.OfUser(book, user)
                    ?? Full(book.Users.Count, AccessRules.UsersMax, "users");
                return problem is not null
                    ? new AccessPlan<UserRecord>(problem)
                    : new AccessPlan<UserRecord>(
                        user, [AccessRowFormat.Of(user), AccessRowFormat.OfLastUserId(user.Id)]);
            },
            ct);
    }

    /// <summary>Changes a user, and renames it if the change has another name. It keeps its number.</summary>
    public Task<AccessAnswer<UserRecord>> UpdateUserAsync(string name, UserChange wanted, CancellationToken ct)
    {
        if (wanted.IsNothing)
        {
            return Task.FromResult(new AccessAnswer<UserRecord>(
                null, new AccessProblem(AccessRefusal.InvalidArgument, "The request names nothing to change.")));
        }

        if (Hash(wanted, out PasswordHash? hash) is { } wrong)
        {
            return Task.FromResult(new AccessAnswer<UserRecord>(null, wrong));
        }

        return RunAsync(
            book =>
            {
                if (book.FindUser(name) is not { } present)
                {
                    return new AccessPlan<UserRecord>(NoUser(name));
                }

                UserRecord user = wanted.ApplyTo(present, hash);
                return AccessRules.OfUser(book, user) is { } problem
                    ? new AccessPlan<UserRecord>(problem)
                    : new AccessPlan<UserRecord>(user, [AccessRowFormat.Of(user)]);
            },
            ct);
    }

    /// <summary>
    /// Deletes a user and its tokens. With more tokens than one change takes the user is disabled first and deleted
    /// last; a failure in between leaves it disabled.
    /// </summary>
    /// <returns>The user as it was.</returns>
    public async Task<AccessAnswer<UserRecord>> DeleteUserAsync(string name, CancellationToken ct)
    {
        uint id = 0;
        while (true)
        {
            bool isLast = false;
            AccessAnswer<UserRecord> answer = await RunAsync(
                book =>
                {
                    UserRecord? user = id == 0 ? book.FindUser(name) : book.FindUser(id);
                    if (user is null)
                    {
                        return new AccessPlan<UserRecord>(NoUser(name));
                    }

                    id = user.Id;
                    List<AccessRow> rows =
                    [
                        .. book.Tokens.Where(token => token.UserId == id)
                            .Take(AccessRow.RowsMax)
                            .Select(static token => AccessRowFormat.Deleted(AccessRowFormat.Of(token))),
                    ];
                    isLast = rows.Count < AccessRow.RowsMax;
                    if (!isLast)
                    {
                        rows.RemoveAt(rows.Count - 1);
                    }

                    UserRecord disabled = new UserChange { IsDisabled = true }.ApplyTo(user, null);
                    rows.Add(isLast
                        ? AccessRowFormat.Deleted(AccessRowFormat.Of(user))
                        : AccessRowFormat.Of(disabled));
                    return new AccessPlan<UserRecord>(user, rows);
                },
                ct).ConfigureAwait(false);
            if (isLast || answer.Problem is not null)
            {
                return answer;
            }
        }
    }

    /// <summary>Creates a role, or replaces its grants.</summary>
    public Task<AccessAnswer<RoleRecord>> PutRoleAsync(RoleRecord role, CancellationToken ct) => RunAsync(
        book =>
        {
            AccessProblem? problem = role.Name == RoleRecord.AdminName
                ? new AccessProblem(AccessRefusal.FailedPrecondition, IsBuiltIn)
                : AccessRules.OfRole(role)
                    ?? (book.FindRole(role.Name) is null
                        ? Full(book.Roles.Count - 1, AccessRules.RolesMax, "roles")
                        : null);
            return problem is not null
                ? new AccessPlan<RoleRecord>(problem)
                : new AccessPlan<RoleRecord>(role, [AccessRowFormat.Of(role)]);
        },
        ct);

    /// <summary>Deletes a role that no user has.</summary>
    /// <returns>The role as it was.</returns>
    public Task<AccessAnswer<RoleRecord>> DeleteRoleAsync(string name, CancellationToken ct) => RunAsync(
        book =>
        {
            if (name == RoleRecord.AdminName)
            {
                return new AccessPlan<RoleRecord>(AccessRefusal.FailedPrecondition, IsBuiltIn);
            }

            if (book.FindRole(name) is not { } role)
            {
                return new AccessPlan<RoleRecord>(
                    AccessRefusal.NotFound, $"There is no role {QuotedName.Of(name)}.");
            }

            int users = book.Users.Count(user => user.Roles.Contains(name));
            return users > 0
                ? new AccessPlan<RoleRecord>(
                    AccessRefusal.FailedPrecondition,
                    string.Create(
                        CultureInfo.InvariantCulture,
                        $"The role {QuotedName.Of(name)} is in use: {users:N0} users have it. Take it from "
                            + $"them first."))
                : new AccessPlan<RoleRecord>(role, [AccessRowFormat.Deleted(AccessRowFormat.Of(role))]);
        },
        ct);

    /// <summary>Creates a token of a user.</summary>
    /// <param name="user">Whose.</param>
    /// <param name="expiresInMs">Milliseconds that it lives; 0: for ever.</param>
    /// <param name="note">What it is for.</param>
    /// <param name="ct">Ends the wait; the token may still be created, and nobody knows its secret.</param>
    public Task<AccessAnswer<NewToken>> CreateTokenAsync(
        string user, long expiresInMs, string note, CancellationToken ct)
    {
        if (AccessRules.OfToken(expiresInMs, note) is { } wrong)
        {
            return Task.FromResult(new AccessAnswer<NewToken>(null, wrong));
        }

        byte[] secret = TokenText.NewSecret();
        Guid id = TokenText.NewId();
        return RunAsync(
            book =>
            {
                if (book.FindUser(user) is not { } owner)
                {
                    return new AccessPlan<NewToken>(NoUser(user));
                }

                DateTimeOffset now = time.GetUtcNow();
                List<AccessRow> rows =
                [
                    .. book.Tokens.Where(token => token.IsExpired(now - s_forgotten))
                        .Take(AccessRow.RowsMax - 1)
                        .Select(static token => AccessRowFormat.Deleted(AccessRowFormat.Of(token))),
                ];
                if (Full(book.Tokens.Count - rows.Count, AccessRules.TokensMax, "tokens") is { } full)
                {
                    return new AccessPlan<NewToken>(full);
                }

                long created = now.ToUnixTimeMilliseconds();
                TokenRecord token = new(
                    id,
                    owner.Id,
                    TokenText.Hash(secret),
                    created,
                    expiresInMs == 0 ? 0 : created + expiresInMs,
                    note);
                rows.Add(AccessRowFormat.Of(token));
                return new AccessPlan<NewToken>(new NewToken(token, owner, TokenText.Of(id, secret)), rows);
            },
            ct);
    }

    /// <summary>Revokes a token.</summary>
    /// <returns>The token as it was.</returns>
    public Task<AccessAnswer<TokenRecord>> RevokeTokenAsync(Guid id, CancellationToken ct) => RunAsync(
        book => book.FindToken(id) is { } token
            ? new AccessPlan<TokenRecord>(token, [AccessRowFormat.Deleted(AccessRowFormat.Of(token))])
            : new AccessPlan<TokenRecord>(
                AccessRefusal.NotFound, $"There is no token {TokenText.IdText(id)}."),
        ct);

    /// <summary>The only place from which the records change.</summary>
    private async Task<AccessAnswer<T>> RunAsync<T>(Func<AccessBook, AccessPlan<T>> plan, CancellationToken ct)
        where T : class
    {
        for (int tries = 1; ; tries++)
        {
            AccessBook book = ledger.Book;
            if (!MayChange(book))
            {
                return new AccessAnswer<T>(null, new AccessProblem(
                    AccessRefusal.PermissionDenied, "The permission admin is missing; nothing was changed."));
            }

            AccessPlan<T> made = plan(book);
            AccessProblem? problem = made.Problem ?? LastAdministrator(book, made.Rows);
            if (problem?.Reason == AccessRefusal.InvalidArgument)
            {
                return new AccessAnswer<T>(null, problem);
            }

            // A refusal may be due to records that are not the newest. A row that stays as it is shows that they are.
            IReadOnlyList<AccessRow> rows = problem is null
                ? made.Rows
                : [AccessRowFormat.OfLastUserId(book.LastUserId)];
            AccessCommit commit = await ledger.ChangeAsync(book.Version, rows, ct).ConfigureAwait(false);
            if (commit == AccessCommit.Applied)
            {
                return new AccessAnswer<T>(problem is null ? made.Value : null, problem);
            }

            if (commit != AccessCommit.Conflict || tries == TriesMax)
            {
                return new AccessAnswer<T>(null, ProblemOf(commit, isRefusal: problem is not null));
            }

            await Task.Delay(TimeSpan.FromMilliseconds(PauseMs * tries), time, ct).ConfigureAwait(false);
        }
    }

    private static AccessProblem ProblemOf(AccessCommit commit, bool isRefusal) => commit switch
    {
        AccessCommit.Conflict => new AccessProblem(
            AccessRefusal.Conflict,
            "Other changes of users, roles or tokens came first, several times; nothing was changed. Try again."),
        AccessCommit.Full => new AccessProblem(
            AccessRefusal.ResourceExhausted,
            string.Create(
                CultureInfo.InvariantCulture,
                $"Users, roles and tokens would take more than {AccessTable.BytesMax:N0} bytes; nothing was changed.")),
        _ when isRefusal => new AccessProblem(
            AccessRefusal.Conflict,
            "The newest users, roles and tokens are not known here yet; nothing was changed. Try again."),
        _ => new AccessProblem(
            AccessRefusal.Unknown, "There was no answer in time; the change may have been made, or may still be."),
    };

    private bool MayChange(AccessBook book) =>
        caller is null
            || (caller.End is null
                && caller.Rights.IsAdmin
                && book.FindUser(caller.UserId) is { } user
                && book.RightsOf(user).IsAdmin);

    private AccessProblem? LastAdministrator(AccessBook book, IReadOnlyList<AccessRow> rows)
    {
        DateTimeOffset now = time.GetUtcNow();
        return book.HasAdministrator(now) && !book.With(rows).HasAdministrator(now)
            ? new AccessProblem(
                AccessRefusal.FailedPrecondition,
                "It would leave the cluster without an administrator who can sign in; nothing was changed.")
            : null;
    }

    private static AccessProblem? Hash(UserChange wanted, out PasswordHash? hash)
    {
        hash = null;
        if (string.IsNullOrEmpty(wanted.Password))
        {
            return null;
        }

        AccessProblem? problem = AccessRules.OfPassword(wanted.Password);
        hash = problem is null ? Passwords.Hash(wanted.Password) : null;
        return problem;
    }

    private static AccessProblem? Full(int count, int most, string what) => count < most
        ? null
        : new AccessProblem(
            AccessRefusal.ResourceExhausted,
            string.Create(CultureInfo.InvariantCulture, $"There are {count:N0} {what}; the limit is {most:N0}."));

    private static AccessProblem NoUser(string name) =>
        new(AccessRefusal.NotFound, $"There is no user {QuotedName.Of(name)}.");
}

/// <summary>A token that was just created. Immutable.</summary>
/// <param name="Token">What is kept of it.</param>
/// <param name="Owner">Whose it is.</param>
/// <param name="Text">What its owner shows.</param>
internal sealed record NewToken(TokenRecord Token, UserRecord Owner, string Text);
