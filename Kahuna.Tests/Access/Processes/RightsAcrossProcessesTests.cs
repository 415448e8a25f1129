using System.Collections.Concurrent;
using System.Diagnostics;
using System.Net;
using Kahuna.Tests.Cluster;
using Xunit.Abstractions;

namespace Kahuna.Tests.Access.Processes;

/// <summary>
/// The second within which a change of rights holds on every node, between real processes. What counts is when a
/// request was sent, by the monotonic clock of this process; how long answers take does not matter.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class RightsAcrossProcessesTests(ITestOutputHelper output)
{
    private const string Path = "/v1/kv/turn/a?durability=DURABILITY_PERSISTENT";
    private const string Password = "a password of eve";
    private const int Rounds = 3;
    private const int AnswersLater = 5;

    private static readonly TimeSpan s_second = TimeSpan.FromSeconds(1);

    [Fact]
    public async Task A_right_that_is_taken_at_one_node_is_gone_a_second_later_at_all()
    {
        await using AccessProcesses cluster = new(output);
        await cluster.Cluster.RunAsync(async () =>
        {
            await BeginAsync(cluster);
            using CancellationTokenSource stop = new();
            Asker[] askers = [.. cluster.Nodes.Skip(1).Select(node => new Asker(cluster, node))];
            Task[] asking = [.. askers.Select(asker => asker.RunAsync(stop.Token))];
            for (int round = 0; round < Rounds; round++)
            {
                await cluster.PutRoleAsync(cluster.Nodes[0], "turn", "turn");
                long given = Stopwatch.GetTimestamp();
                await Eventually.TrueAsync(
                    LastNet.Span,
                    "every node serves",
                    () => Array.TrueForAll(askers, asker => asker.Since(given).Contains(HttpStatusCode.OK)));
                await cluster.PutRoleAsync(cluster.Nodes[0], "turn", null);
                long taken = Stopwatch.GetTimestamp();
                (HttpStatusCode here, _) = await AskAsync(cluster, cluster.Nodes[0]);
                Assert.NotEqual(HttpStatusCode.OK, here);
                long later = taken + (long)(s_second.TotalSeconds * Stopwatch.Frequency);
                await Eventually.TrueAsync(
                    LastNet.Span,
                    "every node has answered later",
                    () => Array.TrueForAll(askers, asker => asker.Since(later).Length >= AnswersLater));
                Assert.All(
                    askers, asker => Assert.DoesNotContain(HttpStatusCode.OK, asker.Since(later)));
            }

            await stop.CancelAsync();
            await Task.WhenAll(asking);
        });
    }

    [Fact]
    public async Task A_node_that_stood_still_does_not_serve_by_old_rights_when_it_wakes()
    {
        await using AccessProcesses cluster = new(output);
        await cluster.Cluster.RunAsync(async () =>
        {
            await BeginAsync(cluster);
            NodeProcess sleeper = cluster.Nodes[2];
            for (int round = 0; round < Rounds; round++)
            {
                await cluster.PutRoleAsync(cluster.Nodes[0], "turn", "turn");
                await Eventually.TrueAsync(
                    LastNet.Span,
                    "the node serves",
                    async () => (await AskAsync(cluster, sleeper)).Status == HttpStatusCode.OK);
                sleeper.Pause();
                Task<(HttpStatusCode Status, string Text)>[] asked;
                try
                {
                    await cluster.PutRoleAsync(cluster.Nodes[0], "turn", null);
                    await Task.Delay(s_second + TimeSpan.FromMilliseconds(50));

                    // They wait in the node's sockets, and are the first that it reads.
                    asked = [.. Enumerable.Range(0, 20).Select(_ => AskAsync(cluster, sleeper))];
                    await Task.Delay(200);
                }
                finally
                {
                    sleeper.Resume();
                }

                foreach ((HttpStatusCode status, string text) in await Task.WhenAll(asked))
                {
                    Assert.True(status != HttpStatusCode.OK, text);
                }

                (HttpStatusCode after, _) = await AskAsync(cluster, sleeper);
                Assert.NotEqual(HttpStatusCode.OK, after);
            }
        });
    }

    private static async Task BeginAsync(AccessProcesses cluster)
    {
        await cluster.Cluster.StartAsync();
        await cluster.PutRoleAsync(cluster.Nodes[0], "turn", "turn");
        await cluster.CreateUserAsync("eve", Password, "turn");
    }

    private static Task<(HttpStatusCode Status, string Text)> AskAsync(AccessProcesses cluster, NodeProcess node) =>
        cluster.AskAsync(node, "eve", Password, "GET", Path);

    /// <summary>Asks one node all the time. Owned by the test.</summary>
    private sealed class Asker(AccessProcesses cluster, NodeProcess node)
    {
        private readonly ConcurrentQueue<(long SentAt, HttpStatusCode Status)> _answers = new();

        /// <summary>Answers to requests that were sent at this time or later.</summary>
        public HttpStatusCode[] Since(long sentAt) =>
            [.. _answers.Where(answer => answer.SentAt >= sentAt).Select(static answer => answer.Status)];

        public async Task RunAsync(CancellationToken stop)
        {
            while (!stop.IsCancellationRequested)
            {
                long sentAt = Stopwatch.GetTimestamp();
                (HttpStatusCode status, _) = await AskAsync(cluster, node);
                _answers.Enqueue((sentAt, status));
                await Task.Delay(10, CancellationToken.None);
            }
        }
    }
}
