using Kahuna.Client;
using Xunit.Abstractions;

namespace Kahuna.Tests.Cluster;

/// <summary>
/// A disk that refuses writes or syncs stops the node, which acknowledges nothing from then on and loses nothing from
/// before.
/// </summary>
[Collection(ClusterCollection.Name)]
public sealed class DiskFaultTests(ITestOutputHelper output)
{
    private const string Syncs = "fsync,fdatasync,sync_file_range";
    private const string Writes = "pwrite64,pwritev,pwritev2";

    private static readonly TimeSpan s_endsWithin = LastNet.Span;

    [Theory]
    [InlineData(Syncs, "EIO")]
    [InlineData(Syncs, "ENOSPC")]
    [InlineData(Writes, "EIO")]
    [InlineData(Writes, "ENOSPC")]
    public async Task Nothing_is_acknowledged_once_the_disk_fails(string calls, string error)
    {
        await using ProcessCluster cluster = new(output, nodes: 1);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            NodeProcess node = cluster.Nodes[0];
            await using KahunaClient patient = cluster.Connect(LastNet.Call);
            await using KahunaClient client = cluster.Connect(TimeSpan.FromSeconds(3));
            for (int i = 0; i < 100; i++)
            {
                await patient.KeyValues.SetAsync($"before{i}", $"{i}");
            }

            int refused = 0;
            using (await DiskFault.InjectAsync(cluster, node, calls, error))
            {
                // The first write meets the fault; the others come before, while and after the node notices.
                await Task.WhenAll(Enumerable.Range(0, 200).Select(async i =>
                {
                    await Task.Delay(i);
                    await Assert.ThrowsAsync<KahunaException>(
                        async () => await client.KeyValues.SetAsync($"after{i}", $"{i}"));
                    Interlocked.Increment(ref refused);
                }));
                node.WaitForExit(s_endsWithin);
            }

            int exitCode = node.ExitCode;
            Assert.NotEqual(0, exitCode);
            Assert.Contains(error, LastWords(node), StringComparison.Ordinal);
            Assert.Contains("log", LastWords(node), StringComparison.OrdinalIgnoreCase);
            output.WriteLine($"The node's last words: {LastWords(node)}");

            await cluster.StartAsync();
            for (int i = 0; i < 100; i++)
            {
                Assert.Equal($"{i}", (await patient.KeyValues.GetAsync($"before{i}")).Value.AsString());
            }

            output.WriteLine(
                $"Checked: {error} from {calls}: node ended with exit code {exitCode}, {refused} writes not "
                    + $"acknowledged, 100 earlier ones read back after the restart");
        });
    }

    [Fact]
    public async Task Cluster_goes_on_without_a_node_whose_disk_fails()
    {
        await using ProcessCluster cluster = new(output);
        await cluster.RunAsync(async () =>
        {
            await cluster.StartAsync();
            await using KahunaClient client = cluster.Connect(TimeSpan.FromSeconds(3));
            await using RecordedLoad load = new(client);
            await load.MakeProgressAsync(RecordedLoad.Now, s_endsWithin);
            NodeProcess leader = await cluster.LeaderAsync();
            using (await DiskFault.InjectAsync(cluster, leader, Syncs, "EIO"))
            {
                leader.WaitForExit(s_endsWithin);
            }

            Assert.NotEqual(0, leader.ExitCode);
            await load.MakeProgressAsync(RecordedLoad.Now, s_endsWithin);
            leader.Start();
            await cluster.WaitReadyAsync();
            await load.MakeProgressAsync(RecordedLoad.Now, s_endsWithin);
            await load.StopAsync();
            output.WriteLine($"Checked: EIO from the leader's sync: {await load.CheckAsync()}");
        });
    }

    /// <summary>What a person sees at the end of the log.</summary>
    private static string LastWords(NodeProcess node) =>
        string.Join('\n', node.Log().TrimEnd().Split('\n').TakeLast(8));
}
