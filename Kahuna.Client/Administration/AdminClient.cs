using System.Runtime.CompilerServices;
using Google.Protobuf;
using Google.Protobuf.WellKnownTypes;
using Kahuna.Client.Connection;
using Kahuna.Client.Outcomes;
using Kahuna.Wire.Protos;

namespace Kahuna.Client.Administration;

/// <summary>
/// Users, roles and tokens of the cluster, and which node leads what. Part of a <see cref="KahunaClient"/>; any thread.
/// <para>
/// Everything but <see cref="WhoAmIAsync"/> needs the permission <see cref="Permissions.Admin"/>. A change is obeyed by
/// the node that made it before its call ends, and by all others within a second. Calls go to any connected node and
/// end within the request timeout. A change whose connection was lost is not repeated: its outcome is unknown.
/// </para>
/// <para>
/// Errors of all calls: <see cref="KahunaErrorCode.Unauthenticated"/>, <see cref="KahunaErrorCode.PermissionDenied"/>,
/// <see cref="KahunaErrorCode.Unavailable"/>, <see cref="KahunaErrorCode.DeadlineExceeded"/>. Of changes also
/// <see cref="KahunaErrorCode.InvalidArgument"/>, <see cref="KahunaErrorCode.ConnectionLost"/>,
/// <see cref="KahunaErrorCode.ChangeConflict"/>, and <see cref="KahunaErrorCode.FailedPrecondition"/> on a cluster that
/// runs without authentication.
/// </para>
/// </summary>
public sealed class AdminClient
{
    private const long LifetimeMsMax = 10L * 366 * 24 * 60 * 60 * 1000;

    private readonly AdminCalls _calls;
    private readonly bool _captures;

    internal AdminClient(ClusterConnection connection, IFrameChannel channel) =>
        (_calls, _captures) = (new AdminCalls(connection, channel), connection.CapturesContext);

    /// <summary>Who the client is, and what it may do. Needs no permission.</summary>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="KahunaException">See the class.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<Identity> WhoAmIAsync(CancellationToken ct = default) => AdminMessages.ToIdentity(
        await ReadAsync("WhoAmI", new WhoAmIRequest(), WhoAmIResponse.Parser, ct).ConfigureAwait(_captures));

    /// <summary>Creates a user.</summary>
    /// <param name="user">The user; its roles exist.</param>
    /// <param name="password">8 to 1,024 bytes; null for a user with tokens or certificates only.</param>
    /// <param name="ct">Ends the wait; a change that was sent may still be made.</param>
    /// <returns>The user as it is now.</returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.AlreadyExists"/>: the name or a certificate's name is taken.
    /// <see cref="KahunaErrorCode.NotFound"/>: there is no such role. <see cref="KahunaErrorCode.LimitReached"/>.
    /// Others: see the class.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<KahunaUser> CreateUserAsync(
        KahunaUser user, string? password = null, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(user);
        CreateUserRequest request = new() { User = AdminMessages.ToWire(user) };
        if (password is not null)
        {
            request.Password = password;
        }

        return AdminMessages.ToUser(
            await ChangeAsync("CreateUser", request, User.Parser, ct).ConfigureAwait(_captures));
    }

    /// <summary>Reads a user.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.NotFound"/>: there is no such user. Others: see the class.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<KahunaUser> GetUserAsync(string name, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(name);
        return AdminMessages.ToUser(await ReadAsync(
            "GetUser", new GetUserRequest { Name = name }, User.Parser, ct).ConfigureAwait(_captures));
    }

    /// <summary>
    /// All users, in the order of their names. Read page by page: a change meanwhile may or may not be seen.
    /// </summary>
    /// <param name="ct">Ends the enumeration.</param>
    /// <exception cref="KahunaException">See the class.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async IAsyncEnumerable<KahunaUser> ListUsersAsync([EnumeratorCancellation] CancellationToken ct = default)
    {
        ListUsersRequest request = new();
        do
        {
            ListUsersResponse page = await ReadAsync("ListUsers", request, ListUsersResponse.Parser, ct)
                .ConfigureAwait(_captures);
            foreach (User user in page.Users)
            {
                yield return AdminMessages.ToUser(user);
            }

            request.PageToken = page.NextPageToken;
        }
        while (request.PageToken.Length > 0);
    }

    /// <summary>Changes a user.</summary>
    /// <param name="name">Its present name.</param>
    /// <param name="change">What changes; not nothing.</param>
    /// <param name="ct">Ends the wait; a change that was sent may still be made.</param>
    /// <returns>The user as it is now.</returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.NotFound"/>: there is no such user or role.
    /// <see cref="KahunaErrorCode.AlreadyExists"/>: the new name or a certificate's name is taken.
    /// <see cref="KahunaErrorCode.FailedPrecondition"/>: nobody would administer the cluster. Others: see the class.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<KahunaUser> UpdateUserAsync(string name, UserChange change, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(name);
        ArgumentNullException.ThrowIfNull(change);
        UpdateUserRequest request = new()
        {
            Name = name,
            User = AdminMessages.ToWire(new KahunaUser
            {
                Name = change.Name ?? "",
                Roles = change.Roles ?? [],
                CertificateNames = change.CertificateNames ?? [],
                IsDisabled = change.IsDisabled ?? false,
                Quota = change.Quota ?? UserQuota.None,
            }),
            UpdateMask = new FieldMask(),
        };
        AddWhen(change.Name is not null, "name");
        AddWhen(change.Roles is not null, "roles");
        AddWhen(change.CertificateNames is not null, "certificate_names");
        AddWhen(change.IsDisabled is not null, "disabled");
        AddWhen(change.Quota is not null, "quota");
        if (change.Password is not null)
        {
            request.Password = change.Password;
        }
        else if (request.UpdateMask.Paths.Count == 0)
        {
            throw OperationErrors.BadArgument("the change of the user is empty");
        }

        return AdminMessages.ToUser(
            await ChangeAsync("UpdateUser", request, User.Parser, ct).ConfigureAwait(_captures));

        void AddWhen(bool changes, string field)
        {
            if (changes)
            {
                request.UpdateMask.Paths.Add(field);
            }
        }
    }

    /// <summary>Deletes a user and its tokens, and ends what it has open.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="ct">Ends the wait; a change that was sent may still be made.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.NotFound"/>: there is no such user.
    /// <see cref="KahunaErrorCode.FailedPrecondition"/>: nobody would administer the cluster. Others: see the class.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask DeleteUserAsync(string name, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(name);
        await ChangeAsync("DeleteUser", new DeleteUserRequest { Name = name }, DeleteUserResponse.Parser, ct)
            .ConfigureAwait(_captures);
    }

    /// <summary>Creates a role, or replaces its grants.</summary>
    /// <param name="role">The role.</param>
    /// <param name="ct">Ends the wait; a change that was sent may still be made.</param>
    /// <returns>The role as it is now.</returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.FailedPrecondition"/>: nobody would administer the cluster, or the role is built in.
    /// <see cref="KahunaErrorCode.LimitReached"/>. Others: see the class.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<KahunaRole> PutRoleAsync(KahunaRole role, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(role);
        return AdminMessages.ToRole(await ChangeAsync(
            "PutRole", new PutRoleRequest { Role = AdminMessages.ToWire(role) }, Role.Parser, ct)
            .ConfigureAwait(_captures));
    }

    /// <summary>Reads a role.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="ct">Ends the wait.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.NotFound"/>: there is no such role. Others: see the class.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<KahunaRole> GetRoleAsync(string name, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(name);
        return AdminMessages.ToRole(await ReadAsync(
            "GetRole", new GetRoleRequest { Name = name }, Role.Parser, ct).ConfigureAwait(_captures));
    }

    /// <summary>All roles, in the order of their names; see <see cref="ListUsersAsync"/>.</summary>
    /// <param name="ct">Ends the enumeration.</param>
    /// <exception cref="KahunaException">See the class.</exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async IAsyncEnumerable<KahunaRole> ListRolesAsync([EnumeratorCancellation] CancellationToken ct = default)
    {
        ListRolesRequest request = new();
        do
        {
            ListRolesResponse page = await ReadAsync("ListRoles", request, ListRolesResponse.Parser, ct)
                .ConfigureAwait(_captures);
            foreach (Role role in page.Roles)
            {
                yield return AdminMessages.ToRole(role);
            }

            request.PageToken = page.NextPageToken;
        }
        while (request.PageToken.Length > 0);
    }

    /// <summary>Deletes a role that no user has.</summary>
    /// <param name="name">Its name.</param>
    /// <param name="ct">Ends the wait; a change that was sent may still be made.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.NotFound"/>: there is no such role.
    /// <see cref="KahunaErrorCode.FailedPrecondition"/>: a user has it, or it is built in. Others: see the class.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask DeleteRoleAsync(string name, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(name);
        await ChangeAsync("DeleteRole", new DeleteRoleRequest { Name = name }, DeleteRoleResponse.Parser, ct)
            .ConfigureAwait(_captures);
    }

    /// <summary>Makes a token for a user.</summary>
    /// <param name="user">The user's name.</param>
    /// <param name="options">Lifetime and note; null: it does not expire.</param>
    /// <param name="ct">Ends the wait; a change that was sent may still be made.</param>
    /// <returns>The token with its secret, which is shown this once.</returns>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.NotFound"/>: there is no such user. <see cref="KahunaErrorCode.LimitReached"/>.
    /// Others: see the class.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<NewToken> CreateTokenAsync(
        string user, TokenOptions? options = null, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(user);
        long lifetimeMs = (long)(options?.Lifetime?.TotalMilliseconds ?? 0);
        if (options?.Lifetime is not null && lifetimeMs is < 1_000 or > LifetimeMsMax)
        {
            throw OperationErrors.BadArgument($"{nameof(TokenOptions.Lifetime)} must be 1 s to 10 years");
        }

        CreateTokenResponse made = await ChangeAsync(
            "CreateToken",
            new CreateTokenRequest { User = user, ExpiresInMs = lifetimeMs, Note = options?.Note ?? "" },
            CreateTokenResponse.Parser,
            ct).ConfigureAwait(_captures);
        return new NewToken(AdminMessages.ToToken(made.Token ?? new Token()), made.Text);
    }

    /// <summary>The tokens of one user or of all; see <see cref="ListUsersAsync"/>.</summary>
    /// <param name="user">The user's name; null for all.</param>
    /// <param name="ct">Ends the enumeration.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.NotFound"/>: there is no such user. Others: see the class.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async IAsyncEnumerable<AccessToken> ListTokensAsync(
        string? user = null, [EnumeratorCancellation] CancellationToken ct = default)
    {
        ListTokensRequest request = new() { User = user ?? "" };
        do
        {
            ListTokensResponse page = await ReadAsync("ListTokens", request, ListTokensResponse.Parser, ct)
                .ConfigureAwait(_captures);
            foreach (Token token in page.Tokens)
            {
                yield return AdminMessages.ToToken(token);
            }

            request.PageToken = page.NextPageToken;
        }
        while (request.PageToken.Length > 0);
    }

    /// <summary>Deletes a token, and ends what was opened with it.</summary>
    /// <param name="id"><see cref="AccessToken.Id"/>.</param>
    /// <param name="ct">Ends the wait; a change that was sent may still be made.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.NotFound"/>: there is no such token. Others: see the class.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask RevokeTokenAsync(string id, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(id);
        await ChangeAsync("RevokeToken", new RevokeTokenRequest { Id = id }, RevokeTokenResponse.Parser, ct)
            .ConfigureAwait(_captures);
    }

    /// <summary>
    /// Moves the leadership of a group of nodes to another one, and returns when that leads. Writes wait until then:
    /// some milliseconds, and an election timeout at most. No acknowledged write is lost. Works without authentication,
    /// too.
    /// </summary>
    /// <param name="transfer">The group and the node.</param>
    /// <param name="ct">Ends the wait; leadership may still move.</param>
    /// <exception cref="KahunaException">
    /// <see cref="KahunaErrorCode.InvalidArgument"/>: there is no such partition or node.
    /// <see cref="KahunaErrorCode.FailedPrecondition"/>: the node cannot lead now, and the message says why.
    /// <see cref="KahunaErrorCode.ChangeConflict"/>: another transfer is under way, or the node did not take leadership
    /// in time; the leader is the same as before. <see cref="KahunaErrorCode.LimitReached"/>: too many transfers in the
    /// last seconds. Others: see the class.
    /// </exception>
    /// <exception cref="KahunaCanceledException"><paramref name="ct"/> was cancelled.</exception>
    public async ValueTask<LeadershipMove> TransferLeadershipAsync(
        LeadershipTransfer transfer, CancellationToken ct = default)
    {
        ArgumentNullException.ThrowIfNull(transfer);
        ArgumentOutOfRangeException.ThrowIfNegative(transfer.Partition);
        ArgumentOutOfRangeException.ThrowIfNegative(transfer.To ?? 0);
        ArgumentOutOfRangeException.ThrowIfNegative(transfer.From ?? 0);
        TransferLeadershipRequest request = new()
        {
            Partition = (uint)transfer.Partition,
            Group = (LedGroup)transfer.Group,
            To = (uint)(transfer.To ?? 0),
            From = (uint)(transfer.From ?? 0),
            Preferred = transfer.ToPreferred,
        };
        TransferLeadershipResponse answer = await ChangeAsync(
            "TransferLeadership", request, TransferLeadershipResponse.Parser, ct).ConfigureAwait(_captures);
        return new LeadershipMove(answer.Moved, (int)answer.Leader, (int)answer.Previous);
    }

    private ValueTask<TAnswer> ReadAsync<TAnswer>(
        string method, IMessage request, MessageParser<TAnswer> parser,
        CancellationToken ct)
        where TAnswer : IMessage<TAnswer> =>
        _calls.RunAsync(method, request, parser, isRead: true, ct);

    private ValueTask<TAnswer> ChangeAsync<TAnswer>(
        string method, IMessage request, MessageParser<TAnswer> parser,
        CancellationToken ct)
        where TAnswer : IMessage<TAnswer> =>
        _calls.RunAsync(method, request, parser, isRead: false, ct);
}
