using Grpc.Core;
using Kahuna.Server.Access;
using Kahuna.Server.Api.Errors;
using Kahuna.Wire.Protos;

namespace Kahuna.Server.Api;

/// <summary>
/// The administration of users, roles and tokens. Every method asks who calls, and every one but <c>WhoAmI</c> that it
/// may administer. Stateless, any thread.
/// </summary>
/// <param name="changes">Makes the changes.</param>
/// <param name="ledger">The records as this node knows them.</param>
/// <param name="callerOf">Who makes a call.</param>
/// <param name="audit">Keeps a record of the changes; null: nobody does.</param>
/// <param name="quotas">Tells what users use; null: nobody does.</param>
internal sealed class AdminService(
    AccessChanges changes, IAccessLedger ledger, Func<ServerCallContext, Caller> callerOf, IAuditLog? audit = null,
    UserQuotas? quotas = null)
    : Protos.Admin.AdminBase
{
    /// <summary>Moves leaderships. Set before the service is called.</summary>
    public LeaderTransfers? Transfers { get; set; }

    public override Task<WhoAmIResponse> WhoAmI(WhoAmIRequest request, ServerCallContext context)
    {
        Caller caller = Admit(context, needsAdmin: false);
        AccessBook book = ledger.Book;
        UserRecord? user = book.FindUser(caller.UserId);
        RoleRecord[] roles = [.. (user?.Roles ?? []).Select(book.FindRole).OfType<RoleRecord>()];
        User? shown = user is null ? null : ToMessage(user);
        return Task.FromResult(new WhoAmIResponse
        {
            User = shown?.Name ?? "",
            Method = caller.Method.ToString().ToLowerInvariant(),
            Roles = { roles.Select(static role => role.Name) },
            Grants = { roles.SelectMany(static role => role.Grants).Select(AccessMessages.ToMessage) },
            Quota = shown?.Quota,
            Usage = shown?.Usage,
        });
    }

    public override Task<User> CreateUser(CreateUserRequest request, ServerCallContext context)
    {
        User wanted = request.User ?? new User();
        UserChange change = new()
        {
            Name = wanted.Name,
            Roles = wanted.Roles,
            CertificateNames = wanted.CertificateNames,
            IsDisabled = wanted.Disabled,
            Password = request.HasPassword ? request.Password : null,
            Quota = AccessMessages.ToQuota(wanted.Quota),
        };
        return ChangeAsync(
            context,
            "create user",
            wanted.Name,
            (mine, ct) => mine.CreateUserAsync(change, ct),
            ToMessage);
    }

    public override Task<User> GetUser(GetUserRequest request, ServerCallContext context)
    {
        Admit(context);
        return Task.FromResult(ToMessage(UserOf(request.Name)));
    }

    public override Task<ListUsersResponse> ListUsers(ListUsersRequest request, ServerCallContext context)
    {
        Admit(context);
        NamePage<UserRecord> page = NamePage.Of(
            ledger.Book.Users, static user => user.Name, request.PageSize, request.PageToken);
        return Task.FromResult(new ListUsersResponse
        {
            Users = { page.Items.Select(ToMessage) },
            NextPageToken = page.Next,
        });
    }

    public override Task<User> UpdateUser(UpdateUserRequest request, ServerCallContext context) => ChangeAsync(
        context,
        "update user",
        request.Name,
        (mine, ct) => mine.UpdateUserAsync(request.Name, ChangeOf(request), ct),
        ToMessage);

    public override Task<DeleteUserResponse> DeleteUser(DeleteUserRequest request, ServerCallContext context) =>
        ChangeAsync(
            context,
            "delete user",
            request.Name,
            (mine, ct) => mine.DeleteUserAsync(request.Name, ct),
            static _ => new DeleteUserResponse());

    public override Task<Role> PutRole(PutRoleRequest request, ServerCallContext context)
    {
        Role wanted = request.Role ?? new Role();
        return ChangeAsync(
            context,
            "put role",
            wanted.Name,
            (mine, ct) => mine.PutRoleAsync(AccessMessages.ToRecord(wanted), ct),
            AccessMessages.ToMessage);
    }

    public override Task<Role> GetRole(GetRoleRequest request, ServerCallContext context)
    {
        Admit(context);
        RoleRecord role = ledger.Book.FindRole(request.Name)
            ?? throw NotFound($"There is no role {QuotedName.Of(request.Name)}.");
        return Task.FromResult(AccessMessages.ToMessage(role));
    }

    public override Task<ListRolesResponse> ListRoles(ListRolesRequest request, ServerCallContext context)
    {
        Admit(context);
        NamePage<RoleRecord> page = NamePage.Of(
            ledger.Book.Roles, static role => role.Name, request.PageSize, request.PageToken);
        return Task.FromResult(new ListRolesResponse
        {
            Roles = { page.Items.Select(AccessMessages.ToMessage) },
            NextPageToken = page.Next,
        });
    }

    public override Task<DeleteRoleResponse> DeleteRole(DeleteRoleRequest request, ServerCallContext context) =>
        ChangeAsync(
            context,
            "delete role",
            request.Name,
            (mine, ct) => mine.DeleteRoleAsync(request.Name, ct),
            static _ => new DeleteRoleResponse());

    public override Task<CreateTokenResponse> CreateToken(CreateTokenRequest request, ServerCallContext context) =>
        ChangeAsync(
            context,
            "create token",
            request.User,
            (mine, ct) => mine.CreateTokenAsync(request.User, request.ExpiresInMs, request.Note, ct),
            static made => new CreateTokenResponse
            {
                Token = AccessMessages.ToMessage(made.Token, made.Owner.Name),
                Text = made.Text,
            });

    public override Task<ListTokensResponse> ListTokens(ListTokensRequest request, ServerCallContext context)
    {
        Admit(context);
        AccessBook book = ledger.Book;
        UserRecord? owner = request.User.Length == 0 ? null : UserOf(request.User);
        IReadOnlyList<TokenRecord> tokens =
            owner is null ? book.Tokens : [.. book.Tokens.Where(token => token.UserId == owner.Id)];
        NamePage<TokenRecord> page = NamePage.Of(
            tokens, static token => TokenText.IdText(token.Id), request.PageSize, request.PageToken);
        return Task.FromResult(new ListTokensResponse
        {
            Tokens =
            {
                page.Items.Select(token =>
                    AccessMessages.ToMessage(token, book.FindUser(token.UserId)?.Name ?? "")),
            },
            NextPageToken = page.Next,
        });
    }

    public override Task<RevokeTokenResponse> RevokeToken(RevokeTokenRequest request, ServerCallContext context) =>
        ChangeAsync(
            context,
            "revoke token",
            request.Id,
            (mine, ct) => Guid.TryParseExact(request.Id, "N", out Guid id)
                ? mine.RevokeTokenAsync(id, ct)
                : throw AccessMessages.Invalid("The id of a token has 32 hexadecimal digits."),
            static _ => new RevokeTokenResponse());

    public override async Task<TransferLeadershipResponse> TransferLeadership(
        TransferLeadershipRequest request, ServerCallContext context)
    {
        Caller caller = callerOf(context);
        IAuditLog? record = caller.Method == CallerMethod.Node ? null : audit;
        string subject = LeaderTransfers.SubjectOf(request);
        string result = AuditResults.Unknown;
        try
        {
            // The policy of the path lets in administrators and nodes, and everybody where authentication is off.
            caller = caller.Method is CallerMethod.None or CallerMethod.Node ? caller : Admit(context);
            TransferLeadershipResponse answer = await Transfers!.RunAsync(
                request, isPassedOn: caller.Method == CallerMethod.Node, context.CancellationToken)
                .ConfigureAwait(false);
            result = AuditResults.Done;
            return answer;
        }
        catch (RpcException error)
        {
            bool isUnknown = error.Trailers.GetValue(OutcomeErrors.OutcomeTrailer) == OutcomeErrors.Unknown;
            result = isUnknown ? result : AuditResults.Refused(error.Status.Detail);
            throw;
        }
        finally
        {
            record?.Write(caller, "transfer leadership", subject, result);
        }
    }

    /// <summary>The only place that lets a call in.</summary>
    /// <exception cref="RpcException">The caller is not somebody, or may not administer.</exception>
    private Caller Admit(ServerCallContext context, bool needsAdmin = true)
    {
        Caller caller = callerOf(context);
        if (caller.End is { } end)
        {
            throw OutcomeErrors.Build(StatusCode.Unauthenticated, end, OutcomeErrors.DidNotHappen);
        }

        if (!needsAdmin || caller.Rights.IsAdmin)
        {
            return caller;
        }

        throw caller.Method == CallerMethod.None
            ? OutcomeErrors.Build(
                StatusCode.FailedPrecondition,
                "The node runs without authentication, so that there are no users; start it with --auth required.",
                OutcomeErrors.DidNotHappen)
            : OutcomeErrors.Build(
                StatusCode.PermissionDenied, "The permission admin is missing.", OutcomeErrors.DidNotHappen);
    }

    private async Task<TMessage> ChangeAsync<TRecord, TMessage>(
        ServerCallContext context,
        string action,
        string subject,
        Func<AccessChanges, CancellationToken, Task<AccessAnswer<TRecord>>> change,
        Func<TRecord, TMessage> toMessage)
        where TRecord : class
    {
        Caller caller;
        try
        {
            caller = Admit(context);
        }
        catch (RpcException refusal)
        {
            audit?.Write(callerOf(context), action, subject, AuditResults.Refused(refusal.Status.Detail));
            throw;
        }

        string result = AuditResults.Unknown;
        try
        {
            AccessAnswer<TRecord> answer = await change(changes.By(caller), context.CancellationToken)
                .ConfigureAwait(false);
            result = ResultOf(answer.Problem);
            return answer.Problem is { } problem
                ? throw AccessMessages.ToException(problem)
                : toMessage(answer.Value!);
        }
        catch (RpcException refusal) when (refusal.StatusCode == StatusCode.InvalidArgument)
        {
            result = AuditResults.Refused(refusal.Status.Detail);
            throw;
        }
        finally
        {
            audit?.Write(caller, action, subject, result);
        }
    }

    private static string ResultOf(AccessProblem? problem) =>
        problem is null ? AuditResults.Done
        : problem.Reason == AccessRefusal.Unknown ? AuditResults.Unknown
        : AuditResults.Refused(problem.Sentence);

    private User ToMessage(UserRecord user) => AccessMessages.ToMessage(user, quotas?.UsageOf(user) ?? default);

    private UserRecord UserOf(string name) =>
        ledger.Book.FindUser(name) ?? throw NotFound($"There is no user {QuotedName.Of(name)}.");

    private static UserChange ChangeOf(UpdateUserRequest request)
    {
        User wanted = request.User ?? new User();
        UserChange change = new() { Password = request.HasPassword ? request.Password : null };
        foreach (string field in request.UpdateMask?.Paths ?? [])
        {
            change = field switch
            {
                "name" => change with { Name = wanted.Name },
                "roles" => change with { Roles = wanted.Roles },
                "certificate_names" => change with { CertificateNames = wanted.CertificateNames },
                "disabled" => change with { IsDisabled = wanted.Disabled },
                "quota" => change with { Quota = AccessMessages.ToQuota(wanted.Quota) },
                _ => throw AccessMessages.Invalid(
                    $"update_mask names {QuotedName.Of(field)}, which is no field that can change; name, roles, "
                        + "certificate_names, disabled and quota can."),
            };
        }

        return change;
    }

    private static RpcException NotFound(string sentence) =>
        AccessMessages.ToException(new AccessProblem(AccessRefusal.NotFound, sentence));
}
