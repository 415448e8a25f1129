using System.Net;
using Kahuna.Server.Access;
using Kahuna.Server.State.Meta;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Access;

/// <summary>Nodes that require authentication, seen by users with different rights.</summary>
[Collection(AccessClusterCollection.Name)]
public sealed class AccessClusterTests(AccessCluster cluster)
{
    private const string Persistent = "\"durability\":\"DURABILITY_PERSISTENT\"";
    private const string Value = "\"value\":{\"data\":\"aGVsbG8=\"}";
    private const string OfPersistent = "durability=DURABILITY_PERSISTENT";

    [Theory]
    [InlineData("PUT", "/v1/kv/{0}/a", "{" + Persistent + "," + Value + "}")]
    [InlineData("GET", "/v1/kv/{0}/a?" + OfPersistent)]
    [InlineData("GET", "/v1/kv/{0}/a?durability=DURABILITY_EPHEMERAL")]
    [InlineData("GET", "/v1/exists/{0}/a?" + OfPersistent)]
    [InlineData("POST", "/v1/extend/{0}/a", "{" + Persistent + ",\"ttlMs\":\"0\"}")]
    [InlineData("POST", "/v1/increment/{0}/n", "{" + Persistent + ",\"amount\":\"1\"}")]
    [InlineData("DELETE", "/v1/kv/{0}/gone?" + OfPersistent)]
    [InlineData("GET", "/v1/scan?prefix={0}/&" + OfPersistent)]
    [InlineData("GET", "/v1/count?prefix={0}/&" + OfPersistent)]
    [InlineData("GET", "/v1/count?prefix={0}/&consistent=true&" + OfPersistent)]
    [InlineData("POST", "/v1/delete-range", "{" + Persistent + ",\"prefix\":\"{0}/gone\",\"limit\":2}")]
    [InlineData(
        "POST", "/v1/batch/set",
        "{\"atomic\":true,\"items\":[{\"key\":\"ann/1\"," + Persistent + "," + Value + "},"
            + "{\"key\":\"{0}/2\"," + Persistent + "," + Value + "}]}")]
    [InlineData(
        "POST", "/v1/batch/get",
        "{\"atomic\":true,\"items\":[{\"key\":\"ann/1\"," + Persistent + "},{\"key\":\"{0}/2\","
            + Persistent + "}]}")]
    [InlineData(
        "POST", "/v1/transaction",
        "{" + Persistent + ",\"conditions\":[{\"key\":\"{0}/c\",\"absent\":true}],"
            + "\"then\":[{\"set\":{\"key\":\"ann/t\"," + Value + "}}]}")]
    [InlineData(
        "POST", "/v1/transaction",
        "{" + Persistent + ",\"then\":[{\"set\":{\"key\":\"ann/t\"," + Value + "}},"
            + "{\"get\":{\"key\":\"{0}/x\",\"durability\":\"DURABILITY_EPHEMERAL\"}}]}")]
    [InlineData(
        "POST", "/v1/transaction",
        "{" + Persistent + ",\"conditions\":[{\"key\":\"{0}/empty/\",\"noKeys\":true}],"
            + "\"then\":[{\"set\":{\"key\":\"ann/t\"," + Value + "}}]}")]
    [InlineData("POST", "/v1/script", "{\"script\":\"set '{0}/s' 'v'\"}")]
    [InlineData("POST", "/v1/script", "{\"script\":\"let x = get 'ann/s' set '{0}/deep/s' 'v'\"}")]
    [InlineData("PUT", "/v1/locks/{0}/l", "{" + Persistent + ",\"owner\":\"me\",\"leaseMs\":\"60000\",\"mode\":\"LOCK_MODE_EXCLUSIVE\"}")]
    [InlineData("GET", "/v1/locks/{0}/l?" + OfPersistent)]
    [InlineData("GET", "/v1/locks?prefix={0}/&" + OfPersistent)]
    [InlineData("POST", "/v1/next/{0}/s", "{}")]
    [InlineData("GET", "/v1/sequences?prefix={0}/")]
    public async Task A_user_may_do_on_its_own_names_what_it_may_not_on_others(
        string method, string path, string? body = null)
    {
        (HttpStatusCode own, string ownText) = await AskAsync("ann", "ann");
        (HttpStatusCode other, string otherText) = await AskAsync("ann", "bob");
        Assert.True(own is HttpStatusCode.OK or HttpStatusCode.NotFound, $"{own}: {ownText}");
        Assert.True(other == HttpStatusCode.Forbidden, $"{other}: {otherText}");
        Assert.Contains("The permission ", otherText, StringComparison.Ordinal);
        Assert.DoesNotContain("aGVsbG8=", otherText, StringComparison.Ordinal);
        (HttpStatusCode nobody, _) = await AskAsync("eve", "eve");
        Assert.Equal(HttpStatusCode.Forbidden, nobody);
        (HttpStatusCode unknown, _) = await AskAsync(null, "ann");
        Assert.Equal(HttpStatusCode.Unauthorized, unknown);
        (HttpStatusCode admin, string adminText) = await AskAsync("root", "bob");
        Assert.True(admin is HttpStatusCode.OK or HttpStatusCode.NotFound, $"{admin}: {adminText}");

        Task<(HttpStatusCode, string)> AskAsync(string? user, string names) => cluster.AskAsync(
            user,
            method,
            path.Replace("{0}", names, StringComparison.Ordinal),
            body?.Replace("{0}", names, StringComparison.Ordinal));
    }

    [Theory]
    [InlineData("/v1/scan?" + OfPersistent)]
    [InlineData("/v1/scan?prefix=an&" + OfPersistent)]
    [InlineData("/v1/count?prefix=ann&" + OfPersistent)]
    [InlineData("/v1/locks?" + OfPersistent)]
    [InlineData("/v1/sequences")]
    [InlineData("/status")]
    public async Task A_list_that_would_reach_beyond_the_right_is_refused_whole(string path)
    {
        Assert.Equal(HttpStatusCode.Forbidden, (await cluster.AskAsync("ann", "GET", path)).Status);
        Assert.Equal(HttpStatusCode.OK, (await cluster.AskAsync("root", "GET", path)).Status);
    }

    [Fact]
    public async Task A_refused_transaction_and_script_leave_nothing_behind()
    {
        foreach (int node in (int[])[0, 1, 2])
        {
            await cluster.AskAsync("ann", "POST", "/v1/transaction", "{" + Persistent
                + ",\"then\":[{\"set\":{\"key\":\"ann/half\"," + Value + "},{\"set\":{\"key\":\"bob/half\"," + Value
                + "}]}", node);
            await cluster.AskAsync(
                "ann", "POST", "/v1/script", "{\"script\":\"set 'ann/half' 'v' set 'bob/half' 'v'\"}", node);
        }

        foreach (string name in (string[])["ann", "bob"])
        {
            (_, string text) = await cluster.AskAsync("root", "GET", $"/v1/exists/{name}/half?" + OfPersistent);
            Assert.Contains("\"found\":false", text, StringComparison.Ordinal);
        }
    }

    [Theory]
    [InlineData("let x = get 'bob/secret' return x")]
    [InlineData("let x = get by bucket 'bob' return x")]
    [InlineData("let x = scan by prefix 'bob/' return x")]
    [InlineData("let x = get 'ann/a' set 'shared/copy' 'v' let y = get 'bob/secret' return y")]
    public async Task A_script_reads_no_name_of_others(string script)
    {
        await cluster.AskAsync("bob", "PUT", "/v1/kv/bob/secret", "{" + Persistent + "," + Value + "}");
        (HttpStatusCode status, string text) = await cluster.AskAsync(
            "ann", "POST", "/v1/script", "{\"script\":\"" + script + "\"}");
        Assert.True(status == HttpStatusCode.Forbidden, $"{status}: {text}");
        Assert.DoesNotContain("hello", text, StringComparison.Ordinal);
        (HttpStatusCode own, string ownText) = await cluster.AskAsync(
            "bob", "POST", "/v1/script", "{\"script\":\"" + script.Replace("ann/", "bob/", StringComparison.Ordinal)
                + "\"}");
        Assert.True(own == HttpStatusCode.OK, $"{own}: {ownText}");
    }

    [Fact]
    public async Task A_fence_needs_the_right_to_its_lock()
    {
        RoleRecord writer = new(
            "writer",
            [
                new Grant(
                    Permissions.Read | Permissions.Write, GrantLevels.Both, GrantScope.Bucket, "fenced"u8.ToArray()),
            ]);
        await cluster.ChangeAsync([AccessRowFormat.Of(writer), cluster.WithRoles("ann", "ann", "writer")]);
        (HttpStatusCode plain, _) = await cluster.AskAsync(
            "ann", "PUT", "/v1/kv/fenced/k", "{" + Persistent + "," + Value + "}");
        Assert.Equal(HttpStatusCode.OK, plain);
        (HttpStatusCode fenced, string text) = await cluster.AskAsync("ann", "PUT", "/v1/kv/fenced/k", "{" + Persistent
            + "," + Value + ",\"fence\":{\"resource\":\"fenced/lock\",\"token\":\"1\"}}");
        Assert.Equal(HttpStatusCode.Forbidden, fenced);
        Assert.Contains("permission lock is missing", text, StringComparison.Ordinal);
        await cluster.ChangeAsync([cluster.WithRoles("ann", "ann")]);
        await cluster.KnownEverywhereAsync();
    }

    [Fact]
    public async Task An_idempotency_key_belongs_to_its_user()
    {
        foreach (string user in (string[])["ann", "bob", "ann", "bob"])
        {
            (HttpStatusCode status, string text) = await cluster.AskAsync(
                user, "POST", "/v1/increment/shared/visits", "{" + Persistent + ",\"amount\":\"1\"}",
                idempotencyKey: "order-7", node: user == "ann" ? 0 : 1);
            Assert.Equal(HttpStatusCode.OK, status);
            Assert.Contains(user == "ann" ? "\"value\":\"1\"" : "\"value\":\"2\"", text, StringComparison.Ordinal);
        }
    }

    [Fact]
    public async Task A_change_of_rights_holds_at_once_here_and_soon_on_every_node()
    {
        const string Path = "/v1/kv/turn/a?" + OfPersistent;
        AccessRow[] give = [AccessRowFormat.Of(AccessCluster.Role("turn", "turn")), cluster.WithRoles("eve", "turn")];
        await cluster.ChangeAsync(give, node: 1);
        Assert.Equal(HttpStatusCode.OK, (await cluster.AskAsync("eve", "GET", Path, node: 1)).Status);
        await UntilAsync(HttpStatusCode.OK, "eve", Path);
        await cluster.ChangeAsync([cluster.WithRoles("eve")], node: 2);
        Assert.Equal(HttpStatusCode.Forbidden, (await cluster.AskAsync("eve", "GET", Path, node: 2)).Status);
        await UntilAsync(HttpStatusCode.Forbidden, "eve", Path);
    }

    [Fact]
    public async Task A_user_that_is_disabled_or_has_another_password_is_nobody()
    {
        const string Path = "/v1/kv/shared/a?" + OfPersistent;
        Assert.Equal(HttpStatusCode.OK, (await cluster.AskAsync("bob", "GET", Path)).Status);
        await cluster.ChangeAsync([cluster.With("bob", static user => user with { IsDisabled = true })]);
        Assert.Equal(HttpStatusCode.Unauthorized, (await cluster.AskAsync("bob", "GET", Path)).Status);
        await cluster.ChangeAsync([cluster.With("bob", static user => user with { IsDisabled = false })]);
        Assert.Equal(HttpStatusCode.OK, (await cluster.AskAsync("bob", "GET", Path)).Status);
        PasswordHash before = Passwords.Hash("bobbob");
        await cluster.ChangeAsync([cluster.With("bob", static user => user with
        {
            Password = Passwords.Hash("another one"),
            PasswordVersion = user.PasswordVersion + 1,
        })]);
        Assert.Equal(HttpStatusCode.Unauthorized, (await cluster.AskAsync("bob", "GET", Path)).Status);
        await cluster.ChangeAsync([cluster.With("bob", user => user with
        {
            Password = before,
            PasswordVersion = user.PasswordVersion + 1,
        })]);
        await cluster.KnownEverywhereAsync();
    }

    private async Task UntilAsync(HttpStatusCode wanted, string user, string path)
    {
        for (int node = 0; node < 3; node++)
        {
            int at = node;
            await Wait.UntilAsync(async () => (await cluster.AskAsync(user, "GET", path, node: at)).Status == wanted);
        }
    }
}
