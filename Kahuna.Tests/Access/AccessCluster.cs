using System.Net;
using System.Text;
using Kahuna.Server.Access;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.State.Meta;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Access;

/// <summary>
/// Three nodes that require authentication, with users: <c>root</c> may do everything, <c>ann</c> everything below
/// <c>ann/</c> and <c>shared/</c>, <c>bob</c> the same below <c>bob/</c> and <c>shared/</c>, and <c>eve</c> nothing.
/// Calls are JSON over HTTP.
/// </summary>
public sealed class AccessCluster : IAsyncLifetime
{
    private const int Nodes = 3;

    private readonly Dictionary<string, UserRecord> _users = [];
    private EmbeddedCluster? _cluster;
    private HttpClient? _http;

    internal EmbeddedCluster Embedded => _cluster!;

    public async Task InitializeAsync()
    {
        _cluster = await EmbeddedCluster.StartAsync(Nodes, configure: static options => options with
        {
            Partitions = 3,
            Access = new AccessOptions { Mode = AuthMode.Required },
        }).WaitAsync(Wait.Longest);
        _http = new HttpClient(new HttpClientHandler
        {
            ServerCertificateCustomValidationCallback = HttpClientHandler.DangerousAcceptAnyServerCertificateValidator,
        });
        await ChangeAsync(
        [
            AccessRowFormat.Of(Role("ann", "ann")),
            AccessRowFormat.Of(Role("bob", "bob")),
            AccessRowFormat.Of(User(1, "root", RoleRecord.AdminName)),
            AccessRowFormat.Of(User(2, "ann", "ann")),
            AccessRowFormat.Of(User(3, "bob", "bob")),
            AccessRowFormat.Of(User(4, "eve")),
            AccessRowFormat.OfLastUserId(4),
        ]);
        await KnownEverywhereAsync();
    }

    public async Task DisposeAsync()
    {
        _http?.Dispose();
        if (_cluster is not null)
        {
            await _cluster.DisposeAsync();
        }
    }

    /// <summary>Changes the records through a node, which obeys them when this returns.</summary>
    internal async Task ChangeAsync(AccessRow[] rows, int node = 0)
    {
        NodeAccess access = Embedded.Nodes[node].Access;
        while (true)
        {
            AccessCommit commit = await access.Ledger!.ChangeAsync(access.State.Book.Version, rows, default)
                .WaitAsync(Wait.Longest);
            if (commit == AccessCommit.Applied)
            {
                return;
            }

            Assert.Equal(AccessCommit.Conflict, commit);
        }
    }

    /// <summary>Waits until all nodes have the newest records.</summary>
    internal Task KnownEverywhereAsync() => Wait.UntilAsync(
        () => Embedded.Nodes.All(node => node.Access.State.Book.Version == Newest && node.Access.State.IsFresh()));

    /// <summary>The user with other roles.</summary>
    internal AccessRow WithRoles(string user, params string[] roles) =>
        AccessRowFormat.Of(_users[user] = _users[user] with { Roles = roles });

    /// <summary>The user with what a change says.</summary>
    internal AccessRow With(string user, Func<UserRecord, UserRecord> change) =>
        AccessRowFormat.Of(_users[user] = change(_users[user]));

    /// <summary>A role with all permissions on data in the buckets and in <c>shared</c>.</summary>
    internal static RoleRecord Role(string name, params string[] buckets) => new(
        name,
        [
            .. buckets.Append("shared").Select(static bucket => new Grant(
                Permissions.Data, GrantLevels.Both, GrantScope.Bucket, Encoding.UTF8.GetBytes(bucket))),
        ]);

    /// <summary>
    /// Calls a node until it is sure of its records, which it is not for a while when the machine stood still. The
    /// password of a user is its name, twice.
    /// </summary>
    internal async Task<(HttpStatusCode Status, string Text)> AskAsync(
        string? user, string method, string path, string? body = null, int node = 0, string? idempotencyKey = null)
    {
        (HttpStatusCode Status, string Text) answer = default;
        await Wait.UntilAsync(async () =>
        {
            answer = await TryAskAsync(user, method, path, body, node, idempotencyKey);
            await Task.Delay(answer.Status == HttpStatusCode.ServiceUnavailable ? 50 : 0);
            return answer.Status != HttpStatusCode.ServiceUnavailable;
        });
        return answer;
    }

    private async Task<(HttpStatusCode Status, string Text)> TryAskAsync(
        string? user, string method, string path, string? body, int node, string? idempotencyKey)
    {
        using HttpRequestMessage request = new(
            new HttpMethod(method), new Uri(Embedded.Nodes[node].Options.Advertise, path));
        if (user is not null)
        {
            string shown = Convert.ToBase64String(Encoding.UTF8.GetBytes($"{user}:{user}{user}"));
            request.Headers.TryAddWithoutValidation("authorization", $"Basic {shown}");
        }

        if (idempotencyKey is not null)
        {
            request.Headers.Add("x-kahuna-idempotency-key", idempotencyKey);
        }

        if (body is not null)
        {
            request.Content = new StringContent(body, Encoding.UTF8, "application/json");
        }

        using HttpResponseMessage answer = await _http!.SendAsync(request).WaitAsync(Wait.Longest);
        return (answer.StatusCode, await answer.Content.ReadAsStringAsync());
    }

    private ulong Newest => Embedded.Nodes.Max(static node => node.Access.State.Book.Version);

    private UserRecord User(uint id, string name, params string[] roles) => _users[name] = new UserRecord(id, name)
    {
        Roles = roles,
        Password = Passwords.Hash(name + name),
    };
}

/// <summary>
/// Tests with users, on one cluster and not beside other tests: a node that stands still is not sure of its records for
/// a while afterwards, and refuses users.
/// </summary>
[CollectionDefinition(Name, DisableParallelization = true)]
public sealed class AccessClusterCollection : ICollectionFixture<AccessCluster>
{
    public const string Name = "Access cluster";
}
