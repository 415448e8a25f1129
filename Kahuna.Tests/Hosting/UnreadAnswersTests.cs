using System.Globalization;
using System.Net;
using Kahuna.Client;
using Kahuna.Server.Hosting;
using Kahuna.Server.Hosting.Options;
using Kahuna.Server.Hosting.Page;
using Kahuna.Tests.Api.Grpc;
using Kahuna.Tests.Client;
using Kahuna.Tests.Hosting.Measurements;

namespace Kahuna.Tests.Hosting;

/// <summary>Callers of a running node that ask for metrics, the status or lists, and do not read them.</summary>
public sealed class UnreadAnswersTests
{
    private const int Callers = 50;

    private static readonly string[] s_paths =
        ["/metrics", "/status", "/status/slow?limit=1000", "/openapi.json", "/ui/app.js"];

    [Fact]
    public async Task Callers_that_do_not_read_lose_their_connections_and_others_get_their_pages_meanwhile()
    {
        await using EmbeddedCluster cluster = await StartAsync();
        KahunaNode node = cluster.Nodes[0];
        double before = await ConnectionsAsync(node);
        List<UnreadCaller> callers = [];
        Task slow = Task.CompletedTask;
        try
        {
            for (int i = 0; i < Callers; i++)
            {
                // More answers than the systems at both ends keep for a connection.
                callers.Add(await UnreadCaller.AskAsync(node.Options.Advertise, s_paths[i % s_paths.Length], 4_000));
            }

            // What the system keeps for this one it goes on reading, for longer than a test may take.
            slow = callers[0].ReadSlowlyAsync(TimeSpan.FromSeconds(1));
            await Wait.UntilAsync(async () =>
            {
                // Each page comes whole, or this throws.
                await Task.Delay(100);
                return await ConnectionsAsync(node) <= before + 1;
            });
        }
        finally
        {
            foreach (UnreadCaller caller in callers)
            {
                await caller.DisposeAsync();
            }

            await slow.WaitAsync(LastNet.Minute);
        }
    }

    [Fact]
    public async Task Answers_that_nobody_reads_on_one_connection_take_up_no_more_than_their_room()
    {
        await using EmbeddedCluster cluster = await StartAsync();
        KahunaNode node = cluster.Nodes[0];
        using HttpMessageInvoker one = RawHttp.AnyServer();
        List<HttpResponseMessage> unread = [];
        for (int i = 0; i < 200; i++)
        {
            using HttpRequestMessage request = new(
                HttpMethod.Get, new Uri(node.Options.Advertise, "/status/slow?limit=1000"))
            {
                Version = HttpVersion.Version20,
                VersionPolicy = HttpVersionPolicy.RequestVersionExact,
            };
            unread.Add(await one.SendAsync(request, CancellationToken.None).WaitAsync(LastNet.Span));
            Assert.InRange(AnswerRoom.Shared.Used, 0, 16 << 20);
        }

        await MetricsPageTests.ReadAsync(node);
        Assert.Contains(unread, static response => IsCutOff(response));
        unread.ForEach(static response => response.Dispose());
    }

    private static bool IsCutOff(HttpResponseMessage response)
    {
        try
        {
            using Stream body = response.Content.ReadAsStream();
            body.CopyTo(Stream.Null);
            return false;
        }
        catch (Exception error) when (error is IOException or HttpRequestException)
        {
            return true;
        }
    }

    private static async Task<double> ConnectionsAsync(KahunaNode node) =>
        (await MetricsPageTests.ReadAsync(node)).Sum("kahuna_connections");

    /// <summary>A node whose slow log is full.</summary>
    private static async Task<EmbeddedCluster> StartAsync()
    {
        EmbeddedCluster cluster = await EmbeddedCluster.StartAsync(1, configure: static options => options with
        {
            Metrics = new MetricsOptions { SlowLogThreshold = TimeSpan.Zero },
        }).WaitAsync(Wait.Longest);
        await using KahunaClient client = PatientClient.Connect(cluster.Endpoints);
        await Task.WhenAll(Enumerable.Range(0, 1_000).Select(i => client.KeyValues.SetAsync(
            string.Create(CultureInfo.InvariantCulture, $"a/{i:D128}"), "1").AsTask()));
        return cluster;
    }
}
