using System.Net;
using System.Text;
using Kahuna.Client;
using Kahuna.Server.Cluster;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Transport;
using Kahuna.Tests.Client;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// Whole clusters whose nodes prove with certificates which node they are: turned on without a stop, and what a stolen
/// secret is worth then.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class PeerTlsTests(ITestOutputHelper output)
{
    private static readonly TimeSpan s_within = LastNet.Span;

    [Fact]
    public async Task Mutual_tls_is_turned_on_node_by_node_under_load()
    {
        await using ProcessCluster cluster = new(output);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(LastNet.Call);
            await using RecordedLoad load = new(client);
            await load.MakeProgressAsync(RecordedLoad.Now, s_within);
            foreach (string mode in (string[])["offer", "mutual"])
            {
                foreach (NodeProcess node in cluster.Nodes)
                {
                    Assert.Equal(0, node.Stop());
                    node.Start("--peer-tls", mode);
                    await cluster.WaitReadyAsync();
                    await load.MakeProgressAsync(RecordedLoad.Now, s_within);
                }
            }

            await load.StopAsync();
            output.WriteLine(await load.CheckAsync());
            await cluster.DigestAsync(s_within);

            // All nodes demand certificates. One that shows none is no longer let in.
            NodeProcess last = cluster.Nodes[2];
            Assert.Equal(0, last.Stop());
            last.Start("--peer-tls", "secret");
            await Eventually.TrueAsync(
                s_within,
                "node 1 refuses node 3",
                () => Task.FromResult(cluster.Nodes[0].Log().Contains(
                    "it says it is node 3, but it shows no certificate", StringComparison.Ordinal)));
        });
    }

    [Fact]
    public async Task A_node_passes_requests_on_and_a_stolen_secret_does_not()
    {
        await using EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(
            3,
            configure: static options => options with
            {
                Partitions = 3,
                PeerTls = PeerTlsMode.Mutual,
                Access = new AccessOptions { Mode = AuthMode.Required },
            }).WaitAsync(Wait.Longest);
        using HttpClient http = new(new HttpClientHandler
        {
            ServerCertificateCustomValidationCallback = HttpClientHandler.DangerousAcceptAnyServerCertificateValidator,
        });
        string proof = cluster.Nodes[0].Access.Credential.Value!;
        string body = """{"user": "root", "password": "correct horse battery"}""";

        // The secret makes the first administrator, and nothing else.
        await Wait.UntilAsync(async () =>
            (await AskAsync(http, cluster, 0, "/init-admin", body, (NodeCredential.Header, proof)))
                is HttpStatusCode.OK or HttpStatusCode.Conflict);
        string root = Convert.ToBase64String(Encoding.UTF8.GetBytes("root:correct horse battery"));
        for (int node = 0; node < cluster.Nodes.Count; node++)
        {
            Assert.Equal(
                HttpStatusCode.Unauthorized,
                await AskAsync(http, cluster, node, PathOf("a"), null, (NodeCredential.Header, proof)));

            // The user's request is passed on to the leader of the key, which trusts the node. While there is none, or
            // a node is not sure of its records, it is refused.
            int from = node;
            for (int key = 0; key < 8; key++)
            {
                string path = PathOf($"k{key}");
                HttpStatusCode answer = default;
                await Wait.UntilAsync(async () =>
                {
                    answer = await AskAsync(http, cluster, from, path, null, ("authorization", $"Basic {root}"));
                    await Task.Delay(answer == HttpStatusCode.ServiceUnavailable ? 50 : 0);
                    return answer != HttpStatusCode.ServiceUnavailable;
                });
                Assert.Equal(HttpStatusCode.OK, answer);
            }
        }
    }

    private static string PathOf(string key) => $"/v1/kv/{key}?durability=DURABILITY_PERSISTENT";

    private static async Task<HttpStatusCode> AskAsync(
        HttpClient http,
        EmbeddedCluster cluster,
        int node,
        string path,
        string? body,
        (string Name, string Value) header)
    {
        using HttpRequestMessage request = new(
            body is null ? HttpMethod.Get : HttpMethod.Post,
            new Uri(cluster.Nodes[node].Options.Advertise, path));
        request.Headers.TryAddWithoutValidation(header.Name, header.Value);
        request.Content = body is null ? null : new StringContent(body, Encoding.UTF8, "application/json");
        using HttpResponseMessage answer = await http.SendAsync(request).WaitAsync(Wait.Longest);
        return answer.StatusCode;
    }
}
