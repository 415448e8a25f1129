using Google.Protobuf;
using Kahuna.Client;
using Kahuna.Client.Administration;
using Kahuna.Client.Connection;
using Kahuna.Wire.Protos;
using RoleGrant = Kahuna.Client.Administration.RoleGrant;

namespace Kahuna.Tests.Client.Access;

/// <summary>The administration through the SDK, against nodes that say what the test says.</summary>
public sealed class AdminClientTests
{
    private static readonly KahunaRole s_role = new(
        "orders",
        [
            RoleGrant.OnPrefix("orders/", Permissions.Read | Permissions.Write, Durability.Persistent),
            RoleGrant.OnKey("mail", Permissions.Lock, Durability.Ephemeral),
            RoleGrant.OnBucket("jobs", Permissions.Data),
            RoleGrant.Admin,
        ]);

    [Fact]
    public async Task A_role_comes_back_as_it_was_sent()
    {
        FakeCluster cluster = new();
        Role? sent = null;
        cluster[1].OnCall = (call, _) =>
        {
            Assert.Equal("/kahuna.v1.Admin/PutRole", call.Path);
            sent = PutRoleRequest.Parser.ParseFrom(call.Request).Role;
            return Answer(sent);
        };
        await using KahunaClient client = cluster.Client();
        KahunaRole put = await Wait.ForAsync(client.Admin.PutRoleAsync(s_role));
        Assert.Equal(("orders", 4), (put.Name, put.Grants.Count));
        Assert.Equal(s_role.Grants, put.Grants);
        Assert.Equal([PermissionKind.Read, PermissionKind.Write], sent!.Grants[0].Permissions);
        Assert.Equal(7, sent.Grants[2].Permissions.Count);
        Assert.Equal((PermissionKind.Admin, "", GrantLevel.Unspecified),
            (Assert.Single(sent.Grants[3].Permissions), sent.Grants[3].Prefix, sent.Grants[3].Level));
    }

    [Fact]
    public async Task A_user_is_made_with_and_without_a_password()
    {
        FakeCluster cluster = new();
        List<CreateUserRequest> sent = [];
        cluster[1].OnCall = (call, _) =>
        {
            sent.Add(CreateUserRequest.Parser.ParseFrom(call.Request));
            User made = sent[^1].User.Clone();
            made.HasPassword = sent[^1].HasPassword;
            made.Quota = null;
            made.Usage = new Usage { Keys = 4, Bytes = 5 };
            return Answer(made);
        };
        await using KahunaClient client = cluster.Client();
        KahunaUser user = new() { Name = "app", Roles = ["orders"], CertificateNames = ["CN=app"], IsDisabled = true };
        KahunaUser made = await Wait.ForAsync(client.Admin.CreateUserAsync(user, "correct horse"));
        Assert.Equal(("app", "orders", "CN=app", true, true),
            (made.Name, made.Roles.Single(), made.CertificateNames.Single(), made.IsDisabled, made.HasPassword));
        Assert.Equal((UserQuota.None, new UserUsage(4, 5)), (made.Quota, made.Usage));
        Assert.False((await Wait.ForAsync(client.Admin.CreateUserAsync(user))).HasPassword);
        Assert.Equal((true, false), (sent[0].HasPassword, sent[1].HasPassword));
    }

    [Fact]
    public async Task A_change_names_what_changes_and_nothing_else()
    {
        FakeCluster cluster = new();
        UpdateUserRequest? sent = null;
        cluster[1].OnCall = (call, _) =>
        {
            sent = UpdateUserRequest.Parser.ParseFrom(call.Request);
            return Answer(sent.User);
        };
        await using KahunaClient client = cluster.Client();
        await Wait.ForAsync(client.Admin.UpdateUserAsync("app", new UserChange { Roles = [], IsDisabled = false }));
        Assert.Equal(["roles", "disabled"], sent!.UpdateMask.Paths);
        Assert.False(sent.HasPassword);
        await Wait.ForAsync(client.Admin.UpdateUserAsync(
            "app", new UserChange { Name = "b", CertificateNames = ["CN=b"], Password = "" }));
        Assert.Equal(["name", "certificate_names"], sent.UpdateMask.Paths);
        Assert.Equal(("app", "b", true, ""), (sent.Name, sent.User.Name, sent.HasPassword, sent.Password));
        UserQuota quota = new() { Keys = 1, Bytes = 2, OperationsPerSecond = 3 };
        KahunaUser limited = await Wait.ForAsync(client.Admin.UpdateUserAsync("app", new UserChange { Quota = quota }));
        Assert.Equal(["quota"], sent.UpdateMask.Paths);
        Assert.Equal((quota, new UserUsage(0, 0)), (limited.Quota, limited.Usage));
        KahunaException empty = await FailedAsync(client.Admin.UpdateUserAsync("app", new UserChange()));
        Assert.Equal(KahunaErrorCode.InvalidArgument, empty.Code);
    }

    [Fact]
    public async Task Lists_go_on_over_pages()
    {
        FakeCluster cluster = new();
        List<string> tokens = [];
        cluster[1].OnCall = (call, _) =>
        {
            ListUsersRequest request = ListUsersRequest.Parser.ParseFrom(call.Request);
            tokens.Add(request.PageToken);
            ListUsersResponse page = new() { NextPageToken = tokens.Count < 3 ? $"p{tokens.Count}" : "" };
            page.Users.Add(new User { Name = $"u{tokens.Count}" });
            return Answer(page);
        };
        await using KahunaClient client = cluster.Client();
        List<string> names = [];
        await foreach (KahunaUser user in client.Admin.ListUsersAsync())
        {
            names.Add(user.Name);
        }

        Assert.Equal(["u1", "u2", "u3"], names);
        Assert.Equal(["", "p1", "p2"], tokens);
    }

    [Fact]
    public async Task A_token_is_made_and_its_text_is_not_shown()
    {
        FakeCluster cluster = new();
        CreateTokenRequest? sent = null;
        cluster[1].OnCall = (call, _) =>
        {
            sent = CreateTokenRequest.Parser.ParseFrom(call.Request);
            return Answer(new CreateTokenResponse
            {
                Text = "kahuna_ab.secret",
                Token = new Token { Id = "ab", User = sent.User, CreatedMs = 1_000, Note = sent.Note },
            });
        };
        await using KahunaClient client = cluster.Client();
        NewToken made = await Wait.ForAsync(client.Admin.CreateTokenAsync(
            "app", new TokenOptions { Lifetime = TimeSpan.FromHours(1), Note = "ci" }));
        Assert.Equal((3_600_000, "ci"), (sent!.ExpiresInMs, sent.Note));
        Assert.Equal(("kahuna_ab.secret", null), (made.Secret, made.Token.ExpiresAt));
        Assert.Equal(DateTimeOffset.UnixEpoch.AddSeconds(1), made.Token.CreatedAt);
        Assert.DoesNotContain("secret", made.ToString(), StringComparison.Ordinal);
        Assert.DoesNotContain("hidden", new UserChange { Password = "hidden" }.ToString(), StringComparison.Ordinal);
        await Wait.ForAsync(client.Admin.CreateTokenAsync("app"));
        Assert.Equal(0, sent.ExpiresInMs);
        KahunaException refusal = await FailedAsync(
            client.Admin.CreateTokenAsync("app", new TokenOptions { Lifetime = TimeSpan.Zero }));
        Assert.Equal(KahunaErrorCode.InvalidArgument, refusal.Code);
    }

    [Theory]
    [InlineData(3, KahunaErrorCode.InvalidArgument)]
    [InlineData(5, KahunaErrorCode.NotFound)]
    [InlineData(6, KahunaErrorCode.AlreadyExists)]
    [InlineData(7, KahunaErrorCode.PermissionDenied)]
    [InlineData(8, KahunaErrorCode.LimitReached)]
    [InlineData(9, KahunaErrorCode.FailedPrecondition)]
    [InlineData(10, KahunaErrorCode.ChangeConflict)]
    [InlineData(12, KahunaErrorCode.Unimplemented)]
    [InlineData(13, KahunaErrorCode.Internal)]
    [InlineData(16, KahunaErrorCode.Unauthenticated)]
    public async Task An_error_has_its_code_and_the_sentence_of_the_node(int status, KahunaErrorCode expected)
    {
        FakeCluster cluster = new();
        cluster[1].OnCall = (_, _) => new CallAnswer(
            new StreamStatus(status, "No such thing"), OperationOutcome.DidNotHappen, []);
        await using KahunaClient client = cluster.Client();
        KahunaException failure = await FailedAsync(client.Admin.GetRoleAsync("r"));
        Assert.Equal(
            (expected, OperationOutcome.DidNotHappen, "No such thing."),
            (failure.Code, failure.Outcome, failure.Message));
    }

    [Fact]
    public async Task What_did_not_happen_is_tried_again_and_what_may_have_is_not()
    {
        FakeCluster cluster = new(nodes: 2);
        int calls = 0;
        CallAnswer OnCall(UnaryCall call, string? authorization) => ++calls switch
        {
            1 => throw new CallLostException("refused", wasSent: false),
            2 => new CallAnswer(new StreamStatus(14, ""), OperationOutcome.DidNotHappen, []),
            3 => Answer(new Role { Name = "r" }),
            _ => throw new CallLostException("reset", wasSent: true),
        };
        cluster[1].OnCall = cluster[2].OnCall = OnCall;
        await using KahunaClient client = await cluster.ConnectedAsync();
        Assert.Equal("r", (await Wait.ForAsync(client.Admin.PutRoleAsync(new KahunaRole("r", [])))).Name);
        Assert.Equal(3, calls);
        KahunaException lost = await FailedAsync(client.Admin.PutRoleAsync(new KahunaRole("r", [])));
        Assert.Equal((KahunaErrorCode.ConnectionLost, OperationOutcome.Unknown), (lost.Code, lost.Outcome));
        Assert.Equal(4, calls);
    }

    [Fact]
    public async Task A_refused_token_is_renewed_once()
    {
        FakeCluster cluster = new();
        List<string?> shown = [];
        int asked = 0;
        string accepted = "Bearer t2";
        cluster[1].OnCall = (_, authorization) =>
        {
            shown.Add(authorization);
            WhoAmIResponse app = new() { User = "app", Method = "token", Quota = new Quota { Keys = 7 } };
            return authorization == accepted
                ? Answer(app)
                : new CallAnswer(new StreamStatus(16, "Expired."), OperationOutcome.DidNotHappen, []);
        };
        await using KahunaClient client = await cluster.ConnectedAsync(
            options => options.Credentials = KahunaCredentials.Token(_ => new($"t{++asked}")));
        Identity identity = await Wait.ForAsync(client.Admin.WhoAmIAsync());
        Assert.Equal(("app", "token"), (identity.User, identity.Method));
        Assert.Equal((7, new UserUsage(0, 0)), (identity.Quota.Keys, identity.Usage));
        Assert.Equal(["Bearer t1", "Bearer t2"], shown);
        accepted = "Bearer none";
        Assert.Equal(KahunaErrorCode.Unauthenticated, (await FailedAsync(client.Admin.WhoAmIAsync())).Code);
        Assert.Equal(4, shown.Count);
    }

    [Fact]
    public async Task The_deadline_and_the_caller_end_a_call()
    {
        ManualTime time = new();
        FakeCluster cluster = new();
        cluster[1].OnCall = static (_, _) => throw new CallLostException("Connection refused", wasSent: false);
        await using KahunaClient client = await cluster.ConnectedAsync(time, TimeSpan.FromSeconds(1));
        Task<Identity> call = Wait.ForAsync(client.Admin.WhoAmIAsync());
        await Wait.UntilAsync(time, () => call.IsCompleted);
        KahunaException failure = await Assert.ThrowsAsync<KahunaException>(() => call);
        Assert.Equal(KahunaErrorCode.Unavailable, failure.Code);
        Assert.Contains("Connection refused", failure.Message, StringComparison.Ordinal);
        using CancellationTokenSource cancel = new();
        Task<Identity> cancelled = Wait.ForAsync(client.Admin.WhoAmIAsync(cancel.Token));
        await cancel.CancelAsync();
        KahunaCanceledException end = await Assert.ThrowsAsync<KahunaCanceledException>(() => cancelled);
        Assert.Equal(OperationOutcome.DidNotHappen, end.Outcome);
    }

    [Fact]
    public async Task Calls_go_to_one_node_while_it_answers()
    {
        const int Calls = 8;
        FakeCluster cluster = new(nodes: 3);
        int[] asked = new int[4];
        int? refusing = null;
        for (int i = 1; i <= 3; i++)
        {
            int node = i;
            cluster[node].OnCall = (_, _) =>
            {
                Interlocked.Increment(ref asked[node]);
                return node == refusing
                    ? new CallAnswer(new StreamStatus(14, "not now"), OperationOutcome.DidNotHappen, [])
                    : Answer(new WhoAmIResponse { User = "ann" });
            };
        }

        // Otherwise the one that refuses may be the only one there is, and is asked again.
        await using KahunaClient client = await cluster.ConnectedAsync();
        for (int i = 0; i < Calls; i++)
        {
            await Wait.ForAsync(client.Admin.WhoAmIAsync());
        }

        refusing = Array.IndexOf(asked, Calls);
        Assert.InRange(refusing.Value, 1, 3);
        await Wait.ForAsync(client.Admin.WhoAmIAsync());
        Assert.Equal(Calls + 1, asked[refusing.Value]);
        Assert.Equal(Calls + 2, asked.Sum());
    }

    private static CallAnswer Answer(IMessage message) =>
        new(new StreamStatus(0, ""), OperationOutcome.Happened, message.ToByteArray());

    private static async Task<KahunaException> FailedAsync<T>(ValueTask<T> call) =>
        await Assert.ThrowsAsync<KahunaException>(() => Wait.ForAsync(call));
}
