using Kahuna.Server.Access;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.State.Meta;
using Kahuna.Tests.Client;

namespace Kahuna.Tests.Hosting.Page;

/// <summary>
/// A node that asks for client certificates, with an administrator <c>root</c> (password <c>rootroot</c>, certificate
/// <c>CN=root</c>) and a user <c>eve</c> who may do nothing (certificate <c>CN=eve</c>). Owned by one test.
/// </summary>
internal sealed class CertificateNode : IAsyncDisposable
{
    private readonly TemporaryDirectory _directory = new();
    private EmbeddedCluster? _cluster;

    /// <summary>The authority that the node knows.</summary>
    public ClientAuthority Authority { get; } = new("CN=clients");

    /// <summary>Where it listens.</summary>
    public Uri Address => _cluster!.Nodes[0].Options.Advertise;

    /// <summary>Starts it, and returns when it knows the users.</summary>
    public static async Task<CertificateNode> StartAsync()
    {
        CertificateNode node = new();
        string authorities = node._directory.File("ca.pem", node.Authority.Pem);
        node._cluster = await EmbeddedCluster.StartAsync(1, configure: options => options with
        {
            Access = new AccessOptions { Mode = AuthMode.Required, ClientCaPath = authorities },
        }).WaitAsync(Wait.Longest);
        NodeAccess access = node._cluster.Nodes[0].Access;
        AccessRow[] rows =
        [
            AccessRowFormat.Of(new UserRecord(1, "root")
            {
                Roles = [RoleRecord.AdminName],
                Password = Passwords.Hash("rootroot"),
                CertificateNames = ["CN=root"],
            }),
            AccessRowFormat.Of(new UserRecord(2, "eve") { CertificateNames = ["CN=eve"] }),
            AccessRowFormat.OfLastUserId(2),
        ];
        while (await access.Ledger!.ChangeAsync(access.State.Book.Version, rows, default).WaitAsync(Wait.Longest)
            != AccessCommit.Applied)
        {
            // Something else was recorded meanwhile.
        }

        return node;
    }

    public async ValueTask DisposeAsync()
    {
        if (_cluster is not null)
        {
            await _cluster.DisposeAsync();
        }

        Authority.Dispose();
        _directory.Dispose();
    }
}
