using System.Text;
using Kahuna.Server.Access;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.State.Meta;
using Kahuna.Tests.Client;
using Kahuna.Tests.Hosting;

namespace Kahuna.Tests.Cli;

/// <summary>
/// Three nodes with users, shared by all tests of the command line. <c>root</c> may do everything, <c>ann</c> all with
/// data below <c>ann/</c>. The password of a user is its name, twice.
/// </summary>
public sealed class CliCluster : IAsyncLifetime
{
    private const int Nodes = 3;
    private readonly TemporaryDirectory _directory = new();
    private EmbeddedCluster? _cluster;

    /// <summary>The endpoints of all nodes.</summary>
    internal string Endpoints => _cluster!.Endpoints;

    public async Task InitializeAsync()
    {
        _cluster = await EmbeddedCluster.StartAsync(Nodes, configure: static options => options with
        {
            Partitions = 2,
            Access = new AccessOptions { Mode = AuthMode.Required },
        }).WaitAsync(Wait.Longest);
        RoleRecord ann = new(
            "ann", [new Grant(Permissions.Data, GrantLevels.Both, GrantScope.Bucket, Encoding.UTF8.GetBytes("ann"))]);
        AccessRow[] rows =
        [
            AccessRowFormat.Of(ann),
            AccessRowFormat.Of(User(1, "root", RoleRecord.AdminName)),
            AccessRowFormat.Of(User(2, "ann", "ann")),
            AccessRowFormat.OfLastUserId(2),
        ];
        NodeAccess access = _cluster.Nodes[0].Access;
        AccessCommit commit;
        do
        {
            commit = await access.Ledger!.ChangeAsync(access.State.Book.Version, rows, default).WaitAsync(Wait.Longest);
        }
        while (commit == AccessCommit.Conflict);
        Assert.Equal(AccessCommit.Applied, commit);
        await Wait.UntilAsync(() => _cluster.Nodes.All(
            node => node.Access.State.Book.Version == access.State.Book.Version && node.Access.State.IsFresh()));
    }

    public async Task DisposeAsync()
    {
        if (_cluster is not null)
        {
            await _cluster.DisposeAsync();
        }

        _directory.Dispose();
    }

    /// <summary>A tool whose environment names the cluster, signed in as a user.</summary>
    /// <param name="user">The user; null: nobody.</param>
    internal CliTool Tool(string? user = "root")
    {
        CliTool tool = new() { Variables = { ["KAHUNA_ENDPOINTS"] = Endpoints } };
        tool.Variables["KAHUNA_CONTEXTS"] = _directory.File($"{Guid.NewGuid():N}.json", "{}");
        if (user is not null)
        {
            tool.Variables["KAHUNA_USER"] = user;
            tool.Variables["KAHUNA_PASSWORD_FILE"] = _directory.File($"{Guid.NewGuid():N}.password", user + user);
        }

        return tool;
    }

    private static UserRecord User(uint id, string name, params string[] roles) => new(id, name)
    {
        Roles = roles,
        Password = Passwords.Hash(name + name),
    };
}

/// <summary>
/// Tests of the command line on one cluster, not beside other tests: a node that stands still refuses users for a
/// while.
/// </summary>
[CollectionDefinition(Name, DisableParallelization = true)]
public sealed class CliClusterCollection : ICollectionFixture<CliCluster>
{
    public const string Name = "Command line";
}
