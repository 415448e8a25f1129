using Google.Protobuf.WellKnownTypes;
using Grpc.Core;
using Kahuna.Server.Access;
using Kahuna.Server.Api;
using Kahuna.Tests.Api;
using Kahuna.Wire.Protos;
using Microsoft.AspNetCore.Http;

namespace Kahuna.Tests.Access;

/// <summary>The admin service as its callers see it: who gets in, and what comes back.</summary>
public sealed class AdminServiceTests : IAuditLog
{
    private readonly MemoryLedger _ledger = new();
    private readonly AdminService _service;
    private readonly List<string> _audited = [];
    private Caller _caller = Caller.Anybody;

    public AdminServiceTests()
    {
        _service = new AdminService(
            new AccessChanges(_ledger, TimeProvider.System), _ledger, _ => _caller, this);
        SignIn(_ledger.PutAdministrator(1, "root"));
    }

    private static ServerCallContext Context => new TestCallContext(new DefaultHttpContext());

    void IAuditLog.Write(Caller caller, string action, string subject, string result) =>
        _audited.Add($"{caller.Name}: {action} {subject}: {result}");

    [Fact]
    public async Task Every_method_but_WhoAmI_needs_an_administrator()
    {
        _ledger.Put(AccessRowFormat.Of(new UserRecord(2, "plain")));
        Dictionary<string, Func<Task>> methods = new()
        {
            ["CreateUser"] = () => _service.CreateUser(new CreateUserRequest(), Context),
            ["GetUser"] = () => _service.GetUser(new GetUserRequest(), Context),
            ["ListUsers"] = () => _service.ListUsers(new ListUsersRequest(), Context),
            ["UpdateUser"] = () => _service.UpdateUser(new UpdateUserRequest(), Context),
            ["DeleteUser"] = () => _service.DeleteUser(new DeleteUserRequest(), Context),
            ["PutRole"] = () => _service.PutRole(new PutRoleRequest(), Context),
            ["GetRole"] = () => _service.GetRole(new GetRoleRequest(), Context),
            ["ListRoles"] = () => _service.ListRoles(new ListRolesRequest(), Context),
            ["DeleteRole"] = () => _service.DeleteRole(new DeleteRoleRequest(), Context),
            ["CreateToken"] = () => _service.CreateToken(new CreateTokenRequest(), Context),
            ["ListTokens"] = () => _service.ListTokens(new ListTokensRequest(), Context),
            ["RevokeToken"] = () => _service.RevokeToken(new RevokeTokenRequest(), Context),
        };
        Assert.Equal(
            Kahuna.Server.Api.Protos.Admin.Descriptor.Methods.Select(static method => method.Name).Order(),
            methods.Keys.Append("WhoAmI").Append("TransferLeadership").Order());
        ulong version = _ledger.Book.Version;
        foreach (Func<Task> method in methods.Values)
        {
            SignIn(_ledger.Book.FindUser("plain")!);
            await FailsAsync(StatusCode.PermissionDenied, method);
            _caller = Caller.Anybody;
            await FailsAsync(StatusCode.FailedPrecondition, method);
            _caller = Caller.Node;
            await FailsAsync(StatusCode.PermissionDenied, method);
            SignIn(new UserRecord(9, "gone"));
            await FailsAsync(StatusCode.Unauthenticated, method);
        }

        // Also for nodes, and without authentication for everybody: see LeaderTransferTests.
        SignIn(_ledger.Book.FindUser("plain")!);
        await FailsAsync(
            StatusCode.PermissionDenied, () => _service.TransferLeadership(new TransferLeadershipRequest(), Context));
        SignIn(new UserRecord(9, "gone"));
        await FailsAsync(
            StatusCode.Unauthenticated, () => _service.TransferLeadership(new TransferLeadershipRequest(), Context));
        Assert.Equal(version, _ledger.Book.Version);
    }

    [Fact]
    public async Task Who_am_I_tells_name_method_roles_and_grants()
    {
        WhoAmIResponse me = await _service.WhoAmI(new WhoAmIRequest(), Context);
        Assert.Equal(("root", "certificate"), (me.User, me.Method));
        Assert.Equal(["admin"], me.Roles);
        RoleGrant grant = Assert.Single(me.Grants);
        Assert.Equal((8, "", GrantLevel.Unspecified), (grant.Permissions.Count, grant.Prefix, grant.Level));
        Assert.Equal((new Quota(), new Usage()), (me.Quota, me.Usage));
        _caller = Caller.Anybody;
        me = await _service.WhoAmI(new WhoAmIRequest(), Context);
        Assert.Null(me.Quota);
        Assert.Equal(("", "none", 0), (me.User, me.Method, me.Roles.Count));
        SignIn(new UserRecord(9, "gone"));
        await FailsAsync(StatusCode.Unauthenticated, () => _service.WhoAmI(new WhoAmIRequest(), Context));
    }

    [Fact]
    public async Task A_user_is_created_changed_and_deleted()
    {
        CreateUserRequest create = new()
        {
            User = new User { Name = "a", CertificateNames = { "CN=a" }, HasPassword = false },
            Password = "correct horse",
        };
        User made = await _service.CreateUser(create, Context);
        Assert.Equal(("a", true, false), (made.Name, made.HasPassword, made.Disabled));
        await FailsAsync(StatusCode.AlreadyExists, () => _service.CreateUser(create, Context));
        User changed = await _service.UpdateUser(
            new UpdateUserRequest
            {
                Name = "a",
                User = new User { Name = "b", Roles = { "admin" }, Disabled = true },
                UpdateMask = new FieldMask { Paths = { "name", "roles" } },
            },
            Context);
        Assert.Equal(("b", false), (changed.Name, changed.Disabled));
        Assert.Equal(["admin"], changed.Roles);
        Assert.Equal(["CN=a"], changed.CertificateNames);
        Assert.Equal(changed, await _service.GetUser(new GetUserRequest { Name = "b" }, Context));
        await _service.DeleteUser(new DeleteUserRequest { Name = "b" }, Context);
        await FailsAsync(StatusCode.NotFound, () => _service.GetUser(new GetUserRequest { Name = "b" }, Context));
        Assert.Equal(
            [
                "root: create user a: done",
                "root: create user a: refused: There is a user \"a\" already.",
                "root: update user a: done",
                "root: delete user b: done",
            ],
            _audited);
    }

    [Fact]
    public async Task A_quota_is_set_changed_and_taken_away()
    {
        User user = new() { Name = "q", Quota = new Quota { Keys = 1, Bytes = 2, OperationsPerSecond = 3 } };
        Quota made = (await _service.CreateUser(new CreateUserRequest { User = user }, Context)).Quota;
        Assert.Equal(user.Quota, made);
        user.Quota = new Quota { Bytes = 7 };
        Assert.Equal(user.Quota, (await Update(user)).Quota);
        await FailsAsync(
            StatusCode.InvalidArgument, () => Update(new User { Quota = new Quota { Keys = -1 } }));
        await FailsAsync(
            StatusCode.InvalidArgument, () => Update(new User { Quota = new Quota { Bytes = long.MaxValue } }));
        await FailsAsync(
            StatusCode.InvalidArgument,
            () => Update(new User { Quota = new Quota { OperationsPerSecond = 10_000_001 } }));
        Assert.Equal(7, (await _service.GetUser(new GetUserRequest { Name = "q" }, Context)).Quota.Bytes);
        Assert.Equal(new Quota(), (await Update(new User())).Quota);
        _ledger.Put(AccessRowFormat.Of(new UserRecord(65_536, "late")));
        await FailsAsync(
            StatusCode.FailedPrecondition, () => Update(new User { Quota = new Quota { Keys = 1 } }, "late"));
        Quota rate = new() { OperationsPerSecond = 1 };
        Assert.Equal(rate, (await Update(new User { Quota = rate }, "late")).Quota);

        Task<User> Update(User change, string name = "q") => _service.UpdateUser(
            new UpdateUserRequest { Name = name, User = change, UpdateMask = new FieldMask { Paths = { "quota" } } },
            Context);
    }

    [Fact]
    public async Task A_mask_names_fields_that_can_change()
    {
        _ledger.Put(AccessRowFormat.Of(new UserRecord(2, "a")));
        await FailsAsync(StatusCode.InvalidArgument, () => Update("has_password"));
        await FailsAsync(StatusCode.InvalidArgument, () => Update("password\n"));
        await FailsAsync(StatusCode.InvalidArgument, () => Update());
        Assert.False((await Update("disabled")).Disabled);
        Assert.Equal(new Quota(), (await Update("quota")).Quota);

        Task<User> Update(params string[] fields) => _service.UpdateUser(
            new UpdateUserRequest { Name = "a", UpdateMask = new FieldMask { Paths = { fields } } }, Context);
    }

    [Fact]
    public async Task A_role_comes_back_as_it_was_put()
    {
        Role role = new()
        {
            Name = "r",
            Grants =
            {
                new RoleGrant { Permissions = { PermissionKind.Read, PermissionKind.Script }, Prefix = "" },
                new RoleGrant { Permissions = { PermissionKind.Lock }, Key = "é", Level = GrantLevel.PersistentNames },
                new RoleGrant
                {
                    Permissions = { PermissionKind.Watch }, Bucket = "b", Level = GrantLevel.EphemeralNames,
                },
            },
        };
        Assert.Equal(role, await _service.PutRole(new PutRoleRequest { Role = role }, Context));
        Assert.Equal(role, await _service.GetRole(new GetRoleRequest { Name = "r" }, Context));
        ListRolesResponse roles = await _service.ListRoles(new ListRolesRequest(), Context);
        Assert.Equal(["admin", "r"], roles.Roles.Select(static one => one.Name));
        await _service.DeleteRole(new DeleteRoleRequest { Name = "r" }, Context);
        await FailsAsync(StatusCode.NotFound, () => _service.GetRole(new GetRoleRequest { Name = "r" }, Context));
        await FailsAsync(
            StatusCode.FailedPrecondition,
            () => _service.DeleteRole(new DeleteRoleRequest { Name = "admin" }, Context));
    }

    [Fact]
    public async Task A_grant_of_unknown_or_missing_parts_is_refused()
    {
        RoleGrant[] wrong =
        [
            new RoleGrant { Prefix = "a" },
            new RoleGrant { Permissions = { PermissionKind.Read } },
            new RoleGrant { Permissions = { PermissionKind.Unspecified }, Prefix = "a" },
            new RoleGrant { Permissions = { PermissionKind.Read, (PermissionKind)99 }, Prefix = "a" },
            new RoleGrant { Permissions = { PermissionKind.Read }, Prefix = "a", Level = (GrantLevel)3 },
            new RoleGrant { Permissions = { PermissionKind.Read }, Key = "" },
            new RoleGrant { Permissions = { PermissionKind.Admin }, Prefix = "a" },
            new RoleGrant { Permissions = { PermissionKind.Admin, PermissionKind.Read } },
        ];
        foreach (RoleGrant grant in wrong)
        {
            Role role = new() { Name = "r", Grants = { grant } };
            await FailsAsync(
                StatusCode.InvalidArgument, () => _service.PutRole(new PutRoleRequest { Role = role }, Context));
        }

        Role admin = new() { Name = "r", Grants = { new RoleGrant { Permissions = { PermissionKind.Admin } } } };
        await _service.PutRole(new PutRoleRequest { Role = admin }, Context);
    }

    [Fact]
    public async Task A_token_is_created_listed_and_revoked()
    {
        CreateTokenResponse made = await _service.CreateToken(
            new CreateTokenRequest { User = "root", ExpiresInMs = 60_000, Note = "deploy" }, Context);
        Assert.Equal(("root", "deploy"), (made.Token.User, made.Token.Note));
        Assert.True(TokenText.TryParse(made.Text, out Guid id, out _));
        Assert.Equal(made.Token.Id, TokenText.IdText(id));
        ListTokensResponse listed = await _service.ListTokens(new ListTokensRequest { User = "root" }, Context);
        Assert.Equal(made.Token, Assert.Single(listed.Tokens));
        await FailsAsync(
            StatusCode.NotFound, () => _service.ListTokens(new ListTokensRequest { User = "gone" }, Context));
        await _service.RevokeToken(new RevokeTokenRequest { Id = made.Token.Id }, Context);
        Assert.Empty((await _service.ListTokens(new ListTokensRequest(), Context)).Tokens);
        await FailsAsync(
            StatusCode.NotFound,
            () => _service.RevokeToken(new RevokeTokenRequest { Id = made.Token.Id }, Context));
        await FailsAsync(
            StatusCode.InvalidArgument, () => _service.RevokeToken(new RevokeTokenRequest { Id = made.Text }, Context));
        Assert.All(_audited, line => Assert.False(line.Contains(made.Text[30..], StringComparison.Ordinal) &&
            !line.Contains("revoke", StringComparison.Ordinal), "the secret was audited"));
    }

    [Fact]
    public async Task Lists_come_in_pages_in_the_order_of_the_names()
    {
        string[] names = ["a", "a/b", "b\u00e9", "root", "z"];
        _ledger.Put([.. names.Where(static name => name != "root").Select(
            static (name, i) => AccessRowFormat.Of(new UserRecord((uint)(i + 2), name)))]);
        List<string> seen = [];
        string token = "";
        do
        {
            ListUsersResponse page = await _service.ListUsers(
                new ListUsersRequest { PageSize = 2, PageToken = token }, Context);
            Assert.InRange(page.Users.Count, 1, 2);
            seen.AddRange(page.Users.Select(static user => user.Name));
            token = page.NextPageToken;
        }
        while (token.Length > 0);
        Assert.Equal(names, seen);
        Assert.Equal(5, (await _service.ListUsers(new ListUsersRequest(), Context)).Users.Count);
        foreach (ListUsersRequest wrong in (ListUsersRequest[])
            [new() { PageSize = -1 }, new() { PageSize = 1_001 }, new() { PageToken = "?" }])
        {
            await FailsAsync(StatusCode.InvalidArgument, () => _service.ListUsers(wrong, Context));
        }
    }

    [Theory]
    [InlineData(AccessCommit.Conflict, StatusCode.Aborted, "did-not-happen")]
    [InlineData(AccessCommit.Unknown, StatusCode.DeadlineExceeded, "unknown")]
    public async Task A_change_without_an_end_says_so(object end, StatusCode code, string outcome)
    {
        _ledger.End = (AccessCommit)end;
        RpcException error = await FailsAsync(
            code, () => _service.PutRole(new PutRoleRequest { Role = new Role { Name = "r" } }, Context));
        Assert.Equal(outcome, error.Trailers.GetValue("kahuna-outcome"));
    }

    [Fact]
    public async Task Refusals_are_audited_and_end_the_change()
    {
        _ledger.Put(AccessRowFormat.Of(new UserRecord(2, "plain")));
        SignIn(_ledger.Book.FindUser("plain")!);
        await FailsAsync(
            StatusCode.PermissionDenied,
            () => _service.DeleteUser(new DeleteUserRequest { Name = "root" }, Context));
        Assert.Equal(["plain: delete user root: refused: The permission admin is missing."], _audited);
    }

    private static async Task<RpcException> FailsAsync(StatusCode code, Func<Task> call)
    {
        RpcException error = await Assert.ThrowsAsync<RpcException>(call);
        Assert.Equal(code, error.StatusCode);
        Assert.NotNull(error.Trailers.GetValue("kahuna-outcome"));
        return error;
    }

    private void SignIn(UserRecord user) => _caller = _ledger.CallerOf(user);
}
