using System.Net;
using Kahuna.Server.Hosting.Administration;
using Kahuna.Tests.Cluster;
using Xunit.Abstractions;

namespace Kahuna.Tests.Access.Processes;

/// <summary>
/// An administrator whose password is lost, on three processes that are restarted one after the other.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class RecoveryProcessesTests(ITestOutputHelper output)
{
    private const string NewPassword = "another correct horse";

    [Fact]
    public async Task Requests_at_two_of_three_nodes_make_the_new_password_hold_and_one_does_not()
    {
        await using AccessProcesses cluster = new(output);
        await cluster.Cluster.RunAsync(async () =>
        {
            await cluster.Cluster.StartAsync();
            string password = cluster.SecretFile("new-password", NewPassword + "\n");
            Assert.Equal(1, await RunAsync(cluster.Nodes[0], "--user", "root", "--password-file", password));
            await RestartAsync(cluster.Nodes[0], "--user", "root", "--password-file", password);
            await cluster.Cluster.WaitReadyAsync();
            string request = RequestOf(cluster.Nodes[0]);
            await Eventually.TrueAsync(
                LastNet.Span,
                "the node has voted",
                () => cluster.Nodes[0].Log().Contains("voted", StringComparison.Ordinal));
            Assert.NotEqual(HttpStatusCode.OK, await StatusAsync(cluster, NewPassword));
            await Eventually.TrueAsync(
                LastNet.Span,
                "the old password still holds",
                async () => await StatusAsync(cluster, AccessProcesses.RootPassword) == HttpStatusCode.OK);

            await RestartAsync(cluster.Nodes[1], "--request", request);
            await Eventually.TrueAsync(
                LastNet.Span,
                "the new password holds",
                async () => await StatusAsync(cluster, NewPassword) == HttpStatusCode.OK);
            Assert.Equal(HttpStatusCode.Unauthorized, await StatusAsync(cluster, AccessProcesses.RootPassword));
            cluster.Cluster.Authorization = AccessNode.Basic("root", NewPassword);
            await cluster.Cluster.WaitReadyAsync();
            await Eventually.TrueAsync(
                LastNet.Span,
                "the requests are gone",
                () => !File.Exists(request) && !File.Exists(RequestOf(cluster.Nodes[1])));
        });
    }

    private static async Task RestartAsync(NodeProcess node, params string[] recovery)
    {
        Assert.Equal(0, node.Stop());
        Assert.Equal(0, await RunAsync(node, recovery));
        node.Start();
    }

    private static Task<int> RunAsync(NodeProcess node, params string[] recovery) =>
        RecoverAdminCommand.RunAsync(["--data", node.DataDirectory, .. recovery]);

    private static string RequestOf(NodeProcess node) =>
        Path.Combine(node.DataDirectory, RecoveryRequest.FileName);

    private static async Task<HttpStatusCode> StatusAsync(AccessProcesses cluster, string password) =>
        (await cluster.AskAsync(cluster.Nodes[2], "root", password, "GET", "/status")).Status;
}
