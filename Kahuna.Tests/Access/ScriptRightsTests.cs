using System.Net;
using Kahuna.Client;
using Kahuna.Client.Administration;
using Kahuna.Client.Locks;
using Kahuna.Client.Scripts;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Access;

/// <summary>
/// Scripts of users whose permissions do not cover the bucket: they run as transactions, and each name that they touch
/// is checked, for the SDK, which drives them itself, and for foreign clients, for which a node does.
/// </summary>
[Collection(AccessClusterCollection.Name)]
public sealed class ScriptRightsTests(AccessCluster cluster)
{
    private const Permissions Usual =
        Permissions.Read | Permissions.Write | Permissions.Script | Permissions.Transaction | Permissions.Lock;

    [Fact]
    public async Task A_script_touches_the_names_of_its_user_and_no_others()
    {
        await using KahunaClient root = Connect("root");
        await CreateAsync(root, "desk-a", Usual);
        await root.KeyValues.SetAsync("desk/desk-a/1", "7");
        await root.KeyValues.SetAsync("desk/desk-a/1x", "desk/other");
        await root.KeyValues.SetAsync("desk/other", "secret");
        await using KahunaClient ann = Connect("desk-a");
        ScriptParameters key = new() { ["k"] = "desk/desk-a/1" };
        ScriptResult left = await ann.Scripts.RunAsync("let x = get @k set 'desk/desk-a/2' x return x", key);
        Assert.Equal("7", left.AsString());
        Assert.Equal("7", (await root.KeyValues.GetAsync("desk/desk-a/2")).Value.AsString());
        (HttpStatusCode status, string text) = await AskAsync(
            "desk-a", "let x = get 'desk/desk-a/1' set 'desk/desk-a/3' x return x");
        Assert.True(status == HttpStatusCode.OK, $"{status}: {text}");
        Assert.Equal("7", (await root.KeyValues.GetAsync("desk/desk-a/3")).Value.AsString());

        foreach (string script in (string[])
            [
                "let x = get 'desk/desk-a/1' let y = get 'desk/other' return y",
                "set 'desk/desk-a/4' 'v' set 'desk/other' 'v'",
                "let x = get 'desk/desk-a/1' if x = '7' then delete 'desk/other' end",
                "let x = get 'desk/desk-a/1' let all = get by bucket 'desk' return all",
                "let x = get 'desk/desk-a/1x' let y = get x return y",
            ])
        {
            KahunaException refused = await Assert.ThrowsAsync<KahunaException>(
                () => ann.Scripts.RunAsync(script).WaitAsync(Wait.Longest));
            Assert.True(refused.Code == KahunaErrorCode.PermissionDenied, $"{script}: {refused}");
            Assert.Equal(OperationOutcome.DidNotHappen, refused.Outcome);
            (status, text) = await AskAsync("desk-a", script);
            Assert.True(status == HttpStatusCode.Forbidden, $"{script}: {status}: {text}");
            Assert.DoesNotContain("secret", refused.Message + text, StringComparison.Ordinal);
        }

        Assert.False((await root.KeyValues.GetAsync("desk/desk-a/4")).Found);
        Assert.Equal("secret", (await root.KeyValues.GetAsync("desk/other")).Value.AsString());
    }

    [Fact]
    public async Task Its_user_needs_transaction_and_its_key_needs_script()
    {
        await using KahunaClient root = Connect("root");
        await CreateAsync(root, "desk-t", Usual & ~Permissions.Transaction);
        await CreateAsync(root, "desk-s", Usual & ~Permissions.Script);
        foreach ((string user, string missing) in
            ((string, string)[])[("desk-t", "transaction"), ("desk-s", "script")])
        {
            string script = $"let x = get 'desk/{user}/1' set 'desk/{user}/2' 'v' return x";
            await using KahunaClient client = Connect(user);
            KahunaException refused = await Assert.ThrowsAsync<KahunaException>(
                () => client.Scripts.RunAsync(script).WaitAsync(Wait.Longest));
            (HttpStatusCode status, string text) = await AskAsync(user, script);

            Assert.Equal(KahunaErrorCode.PermissionDenied, refused.Code);
            Assert.Contains(missing, refused.Message, StringComparison.Ordinal);
            Assert.Equal(HttpStatusCode.Forbidden, status);
            Assert.Contains(missing, text, StringComparison.Ordinal);
        }
    }

    [Fact]
    public async Task What_needs_the_partition_needs_the_whole_bucket()
    {
        await using KahunaClient root = Connect("root");
        await CreateAsync(root, "desk-f", Usual);
        await using KahunaClient client = Connect("desk-f");
        await using LockHandle held = await client.Locks.AcquireAsync(
            "desk/desk-f/lock", TimeSpan.FromMinutes(5), TimeSpan.FromSeconds(30));
        ScriptOptions fenced = new() { Fence = held.Fence };
        KahunaException refused = await Assert.ThrowsAsync<KahunaException>(
            () => client.Scripts.RunAsync("set 'desk/desk-f/1' 'v'", null, fenced).WaitAsync(Wait.Longest));
        (HttpStatusCode status, string text) = await AskAsync("desk-f", "set 'desk/desk-f/1' 'v'", "once");

        Assert.Equal(KahunaErrorCode.PermissionDenied, refused.Code);
        Assert.Contains("the bucket \"desk/desk-f\"", refused.Message, StringComparison.Ordinal);
        Assert.True(status == HttpStatusCode.Forbidden, $"{status}: {text}");
        Assert.Contains("bucket", text, StringComparison.Ordinal);
        Assert.False((await root.KeyValues.GetAsync("desk/desk-f/1")).Found);
    }

    private Task<(HttpStatusCode Status, string Text)> AskAsync(
        string user, string script, string? idempotencyKey = null) => cluster.AskAsync(
        user, "POST", "/v1/script", "{\"script\":\"" + script + "\"}", idempotencyKey: idempotencyKey);

    /// <summary>A user with permissions on the names that begin with its own, in a bucket of others.</summary>
    private async Task CreateAsync(KahunaClient root, string name, Permissions permissions)
    {
        await root.Admin.PutRoleAsync(new KahunaRole(name, [RoleGrant.OnPrefix($"desk/{name}/1", permissions),
            RoleGrant.OnPrefix($"desk/{name}/2", permissions), RoleGrant.OnPrefix($"desk/{name}/3", permissions),
            RoleGrant.OnPrefix($"desk/{name}/4", permissions), RoleGrant.OnPrefix($"desk/{name}/l", permissions)]));
        await root.Admin.CreateUserAsync(new KahunaUser { Name = name, Roles = [name] }, name + name);
        await cluster.KnownEverywhereAsync();
    }

    private KahunaClient Connect(string user) => PatientClient.Connect(
        cluster.Embedded.Endpoints,
        options =>
        {
            options.Credentials = KahunaCredentials.Password(user, user + user);
            options.RequestTimeout = TimeSpan.FromMinutes(1);
        });
}
