using System.Globalization;
using System.Net;
using System.Net.Security;
using System.Text;
using Grpc.Core;
using Grpc.Net.Client;
using Kahuna.Client;
using Kahuna.Client.Administration;
using Kahuna.Client.KeyValues;
using Kahuna.Client.Transactions;
using Kahuna.Server.Hosting;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Client;
using Protos = Kahuna.Server.Api.Protos;
using UserUsage = Kahuna.Server.Access.UserUsage;

namespace Kahuna.Tests.Access;

/// <summary>Users with quotas on nodes that require authentication: the SDK, a foreign gRPC client and JSON.</summary>
[Collection(AccessClusterCollection.Name)]
public sealed class UserQuotaClusterTests(AccessCluster cluster)
{
    private const string Persistent = "\"durability\":\"DURABILITY_PERSISTENT\"";

    [Fact]
    public async Task A_user_at_its_quota_of_keys_reads_and_deletes_and_nothing_else()
    {
        await using KahunaClient root = Connect("root");
        await CreateAsync(root, "keys", new UserQuota { Keys = 3 });
        await using KahunaClient user = Connect("keys");
        await user.KeyValues.SetAsync("keys/0/a", "1");
        await user.KeyValues.SetAsync("keys/1/a", "1");
        await user.KeyValues.SetAsync(
            "keys/2/a", "1", new SetOptions { Durability = Durability.Ephemeral });
        await UsesAsync("keys", new UserUsage(3, 27));
        KahunaUser known = await root.Admin.GetUserAsync("keys");
        Assert.Equal((3, 27, 3), (known.Usage.Keys, known.Usage.Bytes, known.Quota.Keys));

        Identity own = await user.Admin.WhoAmIAsync();
        Assert.Equal((known.Quota, known.Usage), (own.Quota, own.Usage));
        await RefusedAsync(user.KeyValues.SetAsync("keys/3/a", "1").AsTask());
        await RefusedAsync(user.KeyValues.IncrementAsync("keys/3/n", 1).AsTask());
        await RefusedAsync(user.Scripts.RunAsync("set 'keys/3/s' '1'"));
        await RefusedAsync(user.Scripts.RunAsync("let x = get 'keys/0/a' set 'keys/4/s' '1'"));
        await using (Transaction refused = await user.Transactions.BeginAsync())
        {
            await refused.SetAsync("keys/3/a", "1");
            await refused.SetAsync("keys/4/a", "1");
            await RefusedAsync(refused.CommitAsync());
        }

        Assert.Equal("1", (await user.KeyValues.GetAsync("keys/0/a")).Value.AsString());
        await user.KeyValues.DeleteAsync("keys/0/a");
        await UsesAsync("keys", new UserUsage(2, 18));
        await user.KeyValues.SetAsync("keys/3/a", "1");
        await root.Admin.UpdateUserAsync("keys", new UserChange { Quota = UserQuota.None });
        await cluster.KnownEverywhereAsync();
        await user.KeyValues.SetAsync("keys/4/a", "1");
    }

    [Fact]
    public async Task A_foreign_client_and_json_hear_of_the_quota_and_what_was_written_counts()
    {
        await using KahunaClient root = Connect("root");
        await CreateAsync(root, "bytes", UserQuota.None);
        using GrpcChannel channel = Channel();
        await SetAsync(channel, "bytes", "bytes/0/a");
        await UsesAsync("bytes", new UserUsage(1, 14));

        // A node coordinates these two for the user.
        const string Set = "{\"set\":{\"key\":\"bytes/{0}/a\",\"value\":{\"data\":\"aGVsbG8=\"}}}";
        string sets = string.Join(',', Enumerable.Range(1, 8).Select(static i =>
            Set.Replace("{0}", i.ToString(CultureInfo.InvariantCulture), StringComparison.Ordinal)));
        (HttpStatusCode status, string text) = await cluster.AskAsync(
            "bytes", "POST", "/v1/transaction", "{" + Persistent + ",\"then\":[" + sets + "]}");
        Assert.True(status == HttpStatusCode.OK, $"{status}: {text}");
        await UsesAsync("bytes", new UserUsage(9, 126));
        const string Script = "let x = get 'bytes/0/a' set 'bytes/9/a' x set 'bytes/x/a' 'hello'";
        (status, text) = await cluster.AskAsync("bytes", "POST", "/v1/script", "{\"script\":\"" + Script + "\"}");
        Assert.True(status == HttpStatusCode.OK, $"{status}: {text}");
        await UsesAsync("bytes", new UserUsage(11, 154));
        await root.Admin.UpdateUserAsync("bytes", new UserChange { Quota = new UserQuota { Bytes = 14 } });
        await cluster.KnownEverywhereAsync();
        RpcException refused = await Assert.ThrowsAsync<RpcException>(() => SetAsync(channel, "bytes", "bytes/1/a"));
        Assert.Equal(StatusCode.ResourceExhausted, refused.StatusCode);
        Assert.Contains("quota of 14 bytes", refused.Status.Detail, StringComparison.Ordinal);
        (status, text) = await cluster.AskAsync(
            "bytes",
            "POST",
            "/v1/transaction",
            "{" + Persistent + ",\"then\":[{\"set\":{\"key\":\"bytes/2/a\",\"value\":{\"data\":\"aGVsbG8=\"}}},"
                + "{\"set\":{\"key\":\"bytes/3/a\",\"value\":{\"data\":\"aGVsbG8=\"}}}]}");
        Assert.True(status == HttpStatusCode.TooManyRequests, $"{status}: {text}");
        Assert.Contains("quota of 14 bytes", text, StringComparison.Ordinal);
        (status, text) = await cluster.AskAsync("root", "GET", "/v1/admin/users/bytes");
        Assert.True(status == HttpStatusCode.OK, $"{status}: {text}");
        Assert.Contains("\"usage\":{\"keys\":\"11\",\"bytes\":\"154\"}", text, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Operations_per_second_are_the_users_on_all_of_its_connections()
    {
        await using KahunaClient root = Connect("root");
        await CreateAsync(root, "rate", new UserQuota { OperationsPerSecond = 1 });
        using GrpcChannel first = Channel();

        // A list of a thousand leaves a debt of a thousand seconds.
        Protos.GetManyKeyValuesRequest many = new()
        {
            Atomic = true,
            Items =
            {
                Enumerable.Range(0, 1_000).Select(static i => new Protos.GetKeyValueRequest
                {
                    Key = string.Create(CultureInfo.InvariantCulture, $"rate/{i}"),
                    Durability = Protos.Durability.Persistent,
                }),
            },
        };
        await first.UnaryAsync(
            "/kahuna.v1.KeyValues/GetManyKeyValues", many, Protos.GetManyKeyValuesResponse.Parser, As("rate"));
        using GrpcChannel second = Channel();
        foreach (GrpcChannel channel in (GrpcChannel[])[first, second])
        {
            RpcException refused = await Assert.ThrowsAsync<RpcException>(() => SetAsync(channel, "rate", "rate/a"));
            Assert.Equal(StatusCode.ResourceExhausted, refused.StatusCode);
            Assert.Contains("quota of 1 operations per second", refused.Status.Detail, StringComparison.Ordinal);
        }

        (HttpStatusCode status, string text) = await cluster.AskAsync(
            "root",
            "PATCH",
            "/v1/admin/users/rate",
            "{\"user\":{\"quota\":{\"keys\":100}},\"updateMask\":\"quota\"}");
        Assert.True(status == HttpStatusCode.OK, $"{status}: {text}");
        await cluster.KnownEverywhereAsync();
        await SetAsync(second, "rate", "rate/a");
    }

    private async Task CreateAsync(KahunaClient root, string name, UserQuota quota)
    {
        await root.Admin.PutRoleAsync(new KahunaRole(
            name,
            [
                RoleGrant.OnPrefix(
                    name + "/",
                    Permissions.Read
                        | Permissions.Write
                        | Permissions.Script
                        | Permissions.Transaction),
            ]));
        await root.Admin.CreateUserAsync(
            new KahunaUser { Name = name, Roles = [name], Quota = quota }, Password(name));
        await cluster.KnownEverywhereAsync();
    }

    private async Task UsesAsync(string user, UserUsage expected)
    {
        await Wait.UntilAsync(
            () => Task.FromResult(cluster.Embedded.Nodes.All(node => Usage(node, user) == expected)), LastNet.Minute);

        // A node relies on a sum for a millisecond.
        await Task.Delay(20);
    }

    private static UserUsage Usage(KahunaNode node, string user) =>
        node.Access.State.Quotas.UsageOf(node.Access.State.Book.FindUser(user)!);

    private GrpcChannel Channel() => GrpcChannel.ForAddress(
        cluster.Embedded.Nodes[0].Options.Advertise,
        new GrpcChannelOptions
        {
            HttpHandler = new SocketsHttpHandler
            {
                SslOptions = new SslClientAuthenticationOptions
                {
                    RemoteCertificateValidationCallback = static (_, _, _, _) => true,
                },
            },
        });

    private static async Task SetAsync(GrpcChannel channel, string user, string key) => await channel.UnaryAsync(
        "/kahuna.v1.KeyValues/SetKeyValue",
        new Protos.SetKeyValueRequest
        {
            Key = key,
            Durability = Protos.Durability.Persistent,
            Value = new Protos.Value { Data = Google.Protobuf.ByteString.CopyFromUtf8("hello") },
        },
        Protos.SetKeyValueResponse.Parser,
        As(user));

    private static CallOptions As(string user)
    {
        string shown = Convert.ToBase64String(Encoding.UTF8.GetBytes($"{user}:{Password(user)}"));
        return TestCalls.Within(Wait.Longest, new Metadata { { "authorization", $"Basic {shown}" } });
    }

    /// <summary>As <see cref="AccessCluster.AskAsync"/> has it.</summary>
    private static string Password(string user) => user + user;

    private KahunaClient Connect(string user) => PatientClient.Connect(
        cluster.Embedded.Endpoints,
        options =>
        {
            options.Credentials = KahunaCredentials.Password(user, Password(user));
            options.RequestTimeout = TimeSpan.FromMinutes(1);
        });

    private static async Task RefusedAsync(Task call)
    {
        KahunaException refused = await Assert.ThrowsAsync<KahunaException>(() => call.WaitAsync(Wait.Longest));
        Assert.Equal(KahunaErrorCode.QuotaExceeded, refused.Code);
        Assert.Equal(OperationOutcome.DidNotHappen, refused.Outcome);
        Assert.Contains("quota of 3 keys: it has 3", refused.Message, StringComparison.Ordinal);
    }
}
